import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { createApplication, createKey, signUp } from '../testing/caller.ts';
import { outcome, upload } from '../testing/files.ts';
import { type Fleet, type FleetProcess, type FleetService, startFleet } from '../testing/fleet/fleet.ts';
import { LiveClient, readSocketKey, setSetting } from '../testing/live.ts';

const READY = { timeoutMs: 20_000 };

let fleet: Fleet | undefined;
let database: TestDatabase | undefined;
afterEach(async () => {
  await fleet?.stop();
  await database?.drop();
  fleet = undefined;
  database = undefined;
});

const probes = (one: FleetProcess) => Promise.all([one.probe('/healthz'), one.probe('/readyz')]);

/** Starts a process and waits until it lives. */
async function launch(one: FleetProcess): Promise<void> {
  await one.launch();
  await eventually(async () => (await one.probe('/healthz')) === 200, READY);
}

/** Does what takes all services. */
async function expectWorking({ api, realtimeUrl }: Fleet): Promise<void> {
  const owner = await signUp(api);
  const key = await createKey(owner);
  const applicationId = await createApplication(key.api);
  const client = new LiveClient(realtimeUrl, await readSocketKey(key.api, applicationId));
  await client.ready();
  expect(outcome(await upload(key.api, applicationId, 'release'))).toBe('200');
  await setSetting(key.api, applicationId, 'version', '2.0');
  await eventually(() => expect(client.told()).toEqual(['version_changed 2.0']));
  client.ws.terminate();
}

describe.skipIf(inject('latchkeyInstance').shape !== 'deployed')('services start in any order', () => {
  it('each lives without the others, is not ready while it lacks one, and is by itself when that is there', async () => {
    fleet = await startFleet({ count: 1, start: false });
    const processes: FleetProcess[] = [];
    // Those that call come before those that they call.
    const order: ReadonlyArray<[FleetService, number]> = [
      ['gateway', 503],
      ['realtime', 503],
      ['files', 200],
      ['identity', 200],
    ];
    for (const [service, readiness] of order) {
      const one = fleet.process(service);
      await launch(one);
      processes.push(one);
      // A probe that is not answered within a second says neither.
      await eventually(async () => expect([service, ...(await probes(one))]).toEqual([service, 200, readiness]), READY);
    }
    const pids = processes.map(({ pid }) => pid);
    // A client of a gateway that lacks services has an error, and no silence.
    const answer = await fleet.gateways[0]?.send('GET', '/api/v1/panel/get-applications', { mayFail: true });
    expect(answer?.status).toBe(401);
    const signIn = { email: 'a@example.com', password: 'correct horse battery staple' };
    expect((await fleet.gateways[0]?.send('POST', '/api/v1/auth/sign-in', { body: signIn, mayFail: true }))?.status).toBe(401);
    await launch(fleet.process('apps'));
    for (const one of fleet.processes) await one.ready();
    expect(processes.map(({ pid }) => pid)).toEqual(pids);
    await expectWorking(fleet);
    // The one that all others call goes away again.
    await fleet.process('apps').kill();
    for (const service of ['gateway', 'realtime'] as const) {
      await eventually(async () => expect(await probes(fleet?.process(service) as FleetProcess)).toEqual([200, 503]), READY);
    }
    await fleet.process('apps').start();
    for (const one of fleet.processes) await one.ready();
    expect(processes.map(({ pid }) => pid)).toEqual(pids);
    await expectWorking(fleet);
  });

  it('all wait for PostgreSQL and Redis, and need no restart when those come', async () => {
    database = await createEmptyTestDatabase();
    const proxies = { postgres: await startTcpProxy(database.url), redis: await startTcpProxy((await testRedis()).url) };
    await Promise.all(Object.values(proxies).map((proxy) => proxy.cut()));
    const own = { databaseUrl: proxies.postgres.url, redisUrl: proxies.redis.url };
    fleet = await startFleet({ count: 1, start: false, ...own });
    await Promise.all(fleet.processes.map((one) => one.launch()));
    const ended: string[] = [];
    for (const one of fleet.processes) void one.exited.then(() => ended.push(one.name));
    for (const service of ['gateway', 'realtime'] as const) {
      const one = fleet.process(service);
      await eventually(async () => expect(await probes(one)).toEqual([200, 503]), READY);
    }
    for (const service of ['apps', 'identity', 'files'] as const) {
      const one = fleet.process(service);
      await eventually(() => one.lines.some((line) => line.includes('waiting for the database')), READY);
      expect(await one.probe('/readyz')).not.toBe(200);
    }
    await proxies.postgres.restore();
    for (const one of fleet.processes) await one.ready();
    // Redis is still away: what does not need it goes on.
    expect((await signUp(fleet.api)).accountId).toMatch(/^[\da-f-]{36}$/);
    await proxies.redis.restore();
    await eventually(() => expectWorking(fleet as Fleet), { timeoutMs: 30_000, intervalMs: 500 });
    expect(ended).toEqual([]);
    await fleet.stop();
    await Promise.all(Object.values(proxies).map((proxy) => proxy.close()));
  });

  it('one that waits for PostgreSQL ends at once, and well, when it is told to', async () => {
    fleet = await startFleet({ count: 1, start: false, databaseUrl: 'postgres://nobody:x@127.0.0.1:1/none' });
    const apps = fleet.process('apps');
    await apps.launch();
    await eventually(() => apps.lines.some((line) => line.includes('waiting for the database')), READY);
    expect(await apps.stop()).toMatchObject({ code: 0, signal: null });
  });
});
