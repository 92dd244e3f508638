import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { expect, inject, it, onTestFinished } from 'vitest';
import { Api } from '../client/api.ts';
import { createApplication, createKey, PASSWORD, signUp } from '../client/caller.ts';
import { outcome, upload } from '../client/files.ts';
import { LiveClient, readSocketKey, setSetting } from '../client/live.ts';
import { type Fleet, type FleetProcess, startFleet } from '../instance/fleet/fleet.ts';
import '../instance/shared-instance.ts';

const READY = { timeoutMs: 20_000 };

const probes = (one: FleetProcess) => Promise.all([one.probe('/healthz'), one.probe('/readyz')]);

/** Does what takes all services. */
async function expectWorking({ api, realtimeUrl }: Fleet): Promise<void> {
  const key = await createKey(await signUp(api));
  const applicationId = await createApplication(key.api);
  const client = new LiveClient(realtimeUrl, await readSocketKey(key.api, applicationId));
  await client.ready();
  expect(outcome(await upload(key.api, applicationId, 'release'))).toBe('200');
  await setSetting(key.api, applicationId, 'version', '2.0');
  await eventually(() => expect(client.received()).toEqual(['version_changed 2.0']));
  client.ws.terminate();
}

/** Signs an owner up with an application, its socket key and a download URL. */
async function createDeletable({ api, gateways, realtimeUrl }: Fleet) {
  const { session } = await signUp(api);
  const applicationId = await createApplication(session);
  const { data: file } = await upload(session, applicationId, 'gone');
  const created = await session.post('/api/v1/panel/create-download-url', { fileId: file.id }, { applicationId });
  const socketKey = await readSocketKey(session, applicationId);
  return {
    // No balancer has a gateway that is not ready.
    remove: () => new Api(gateways[0]?.baseUrl ?? '', session.headers).delete('/api/v1/auth/account', { password: PASSWORD }),
    async expectGone() {
      expect((await fetch(created.data.url)).status).toBe(404);
      expect(await new LiveClient(realtimeUrl, socketKey).ended).toBe(401);
    },
  };
}

it.runIf(inject('latchkeyInstance').shape === 'deployed')(
  'services start in any order, wait for one another without a restart, and catch up with a deleted account',
  async () => {
    const database = await createEmptyTestDatabase();
    const proxies = { postgres: await startTcpProxy(database.url), redis: await startTcpProxy((await testRedis()).url) };
    await Promise.all(Object.values(proxies).map((proxy) => proxy.cut()));
    const fleet = await startFleet({ count: 1, start: false, databaseUrl: proxies.postgres.url, redisUrl: proxies.redis.url });
    onTestFinished(async () => {
      await fleet.stop();
      await Promise.all(Object.values(proxies).map((proxy) => proxy.close()));
      await database.drop();
    });
    const ended: string[] = [];
    const launch = async (one: FleetProcess) => {
      await one.launch();
      void one.exited.then(() => ended.push(one.name));
    };
    // Those that call start before those that they call.
    for (const service of ['gateway', 'realtime', 'files', 'identity'] as const) await launch(fleet.process(service));
    for (const service of ['gateway', 'realtime'] as const)
      await eventually(async () => expect(await probes(fleet.process(service))).toEqual([200, 503]), READY);
    for (const service of ['files', 'identity'] as const) {
      await eventually(() => fleet.process(service).lines.some((line) => line.includes('waiting for the database')), READY);
      expect(await fleet.process(service).probe('/readyz')).not.toBe(200);
    }
    await proxies.postgres.restore();
    for (const service of ['files', 'identity'] as const) await fleet.process(service).ready();
    const lacking = { mayFail: true, body: { email: 'a@example.com', password: PASSWORD } };
    expect((await fleet.gateways[0]?.send('POST', '/api/v1/auth/sign-in', lacking))?.status).toBe(401);
    await launch(fleet.process('apps'));
    for (const one of fleet.processes) await one.ready();
    // Redis is still gone.
    expect((await signUp(fleet.api)).accountId).toMatch(/^[\da-f-]{36}$/);
    await proxies.redis.restore();
    await eventually(() => expectWorking(fleet), { timeoutMs: 30_000, intervalMs: 500 });
    expect(ended).toEqual([]);
    const account = await createDeletable(fleet);
    await fleet.process('apps').kill();
    for (const service of ['gateway', 'realtime'] as const)
      await eventually(async () => expect(await probes(fleet.process(service))).toEqual([200, 503]), READY);
    await fleet.process('files').kill();
    expect(outcome(await account.remove())).toBe('200');
    const killed = (['apps', 'files'] as const).map((service) => fleet.process(service));
    await Promise.all(killed.map((one) => one.launch()));
    for (const one of killed) await eventually(() => one.isReady(), { ...READY, intervalMs: 5 });
    await eventually(account.expectGone, { timeoutMs: 1_000 });
    for (const one of fleet.processes) await one.ready();
    await expectWorking(fleet);
    expect(ended).toEqual(['apps-1', 'files-1']);
  },
);
