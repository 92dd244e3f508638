import { migrations as appsMigrations } from '@latchkey/apps/db/migrations';
import { migrations as filesMigrations } from '@latchkey/files/db/migrations/index';
import { migrations as identityMigrations } from '@latchkey/identity/db/migrations/index';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { withClient } from '@latchkey/testkit/with-client';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { type Answer, Api } from '../testing/api.ts';
import { cookieOf, createApplication, createKey, PASSWORD, signUp } from '../testing/caller.ts';
import { outcome, upload } from '../testing/files.ts';
import { type Fleet, type FleetProcess, type FleetService, startFleet } from '../testing/fleet/fleet.ts';
import { findLogLines } from '../testing/instance.ts';
import { LiveClient, readSocketKey, setSetting } from '../testing/live.ts';
import { startUpload } from '../testing/running-upload.ts';

const MIGRATIONS = { apps: appsMigrations, files: filesMigrations, identity: identityMigrations };
const PER_ADDRESS = 60;
const PER_PRINCIPAL = 40;
const SIGN_INS = 10;
const UPLOADS = 6;
const READY = { timeoutMs: 20_000 };
const APPLICATIONS = '/api/v1/panel/get-applications';

const isDeployed = inject('latchkeyInstance').shape === 'deployed';
const settingsOf = (api: Api, applicationId: string) => api.get('/api/v1/panel/get-application-settings', { applicationId });

/** What one process allows or refuses, the other does too, exactly (R5, S7). */
describe.runIf(isDeployed)('two gateways over two of each service', () => {
  let fleet: Fleet;
  let addresses = 0;
  beforeAll(async () => {
    fleet = await startFleet({
      env: {
        TRUSTED_PROXIES: 'loopback',
        RATE_LIMIT_IP_PER_MINUTE: String(PER_ADDRESS),
        RATE_LIMIT_PRINCIPAL_PER_MINUTE: String(PER_PRINCIPAL),
        AUTH_ATTEMPTS_PER_MINUTE: String(SIGN_INS),
        UPLOAD_ATTEMPTS_PER_MINUTE: String(UPLOADS),
      },
    });
  });
  afterAll(() => fleet?.stop());

  const newAddress = () => ({ 'x-forwarded-for': `198.51.100.${++addresses}` });
  /** The same caller at one of the gateways, in turn; `elsewhere` also from a new address. */
  const at = (api: Api, gateway: number) => new Api(fleet.gateways[gateway % 2]?.baseUrl ?? '', api.headers);
  const elsewhere = (api: Api, gateway: number) => at(api, gateway).with(newAddress());
  const newOwner = () => signUp(fleet.api.with(newAddress()));
  /** Sends requests at the same time to both gateways, and counts the statuses. */
  async function spread(count: number, send: (gateway: number) => Promise<Answer>): Promise<Record<number, number>> {
    const answers: Answer[] = [];
    // A gateway that waits over 250 ms for Redis counts by itself, as it may on a busy machine.
    while (answers.length < count) {
      const first = answers.length;
      answers.push(...(await Promise.all(Array.from({ length: Math.min(10, count - first) }, (_, i) => send(first + i)))));
    }
    return Object.fromEntries([...Map.groupBy(answers, ({ status }) => status)].map(([status, all]) => [status, all.length]));
  }

  it('have applied each migration once, though all processes began to at the same time', async () => {
    await withClient(fleet.databaseUrl, async (client) => {
      for (const [schema, all] of Object.entries(MIGRATIONS)) {
        const { rows } = await client.query(`select name from ${schema}.kysely_migration order by name`);
        expect(rows.map(({ name }) => name)).toEqual(Object.keys(all));
      }
    });
    expect(await findLogLines(fleet.logDir, 'start failed')).toEqual([]);
  });

  it('refuse on the next request what the other one ended: keys, scopes and sessions', async () => {
    const ends = [
      [(session: Api, path: string) => session.post(`${path}/revoke`), '401 api_key_revoked'],
      [(session: Api, path: string) => session.patch(path, { scopes: ['files:read'] }), '403 insufficient_scope'],
    ] as const;
    for (const gateway of [0, 1]) {
      const { session } = await newOwner();
      for (const [end, code] of ends) {
        const { api, id } = await createKey({ ...(await newOwner()), session: elsewhere(session, 0) });
        for (let i = 0; i < 3; i += 1) expect(outcome(await elsewhere(api, gateway + 1).get(APPLICATIONS))).toBe('200');
        expect(outcome(await end(elsewhere(session, gateway), `/api/v1/panel/api-keys/${id}`))).toBe('200');
        expect(outcome(await elsewhere(api, gateway + 1).get(APPLICATIONS))).toBe(code);
      }
      const other = elsewhere(session, gateway + 1);
      expect(outcome(await other.get('/api/v1/auth/session'))).toBe('200');
      expect(outcome(await elsewhere(session, gateway).post('/api/v1/auth/sign-out'))).toBe('200');
      expect(outcome(await other.get('/api/v1/auth/session'))).toBe('401 unauth');
    }
  });

  it('and both realtime nodes end a rotated socket key and a deleted application, and deliver events in order', async () => {
    const { email } = await newOwner();
    const signedIn = await elsewhere(fleet.api, 1).post('/api/v1/auth/sign-in', { email, password: PASSWORD });
    const session = fleet.api.with({ cookie: cookieOf(signedIn.headers), 'x-csrf-token': signedIn.data.csrfToken });
    const applicationId = await createApplication(elsewhere(session, 0));
    const socketKey = await readSocketKey(elsewhere(session, 1), applicationId);
    const clients = [0, 1, 2, 3].map(() => new LiveClient(fleet.realtimeUrl, socketKey));
    await Promise.all(clients.map((client) => client.ready()));
    for (const service of ['realtime', 'apps', 'identity'] as const)
      expect(
        fleet.processesOf(service).every(({ accepted }) => accepted > 0),
        service,
      ).toBe(true);
    for (let i = 1; i <= 6; i += 1) await setSetting(elsewhere(session, i), applicationId, 'version', `1.${i}`);
    for (const client of clients)
      await eventually(() => expect([client.sequences(), client.flaws]).toEqual([[1, 2, 3, 4, 5, 6], []]));
    const rotate = elsewhere(session, 0).patch('/api/v1/panel/update-api-keys', { type: 'socketKey' }, { applicationId });
    expect(outcome(await rotate)).toBe('200');
    expect(await new LiveClient(fleet.realtimeUrl, socketKey).ended).toBe(401);
    expect(await Promise.all(clients.map(({ ended }) => ended))).toEqual(Array(4).fill(4103));
    await elsewhere(session, 0).delete('/api/v1/panel/delete-application', { applicationId, code: '' });
    expect(outcome(await settingsOf(elsewhere(session, 1), applicationId))).toBe('404 not_found');
  });

  it('share the limits of addresses, keys, sign-ins, uploads and rotations', async () => {
    const client = newAddress();
    expect(await spread(PER_ADDRESS * 2, (i) => at(fleet.api, i).with(client).get('/nowhere'))).toEqual({
      404: PER_ADDRESS,
      429: PER_ADDRESS,
    });
    const owner = await newOwner();
    const { api } = await createKey(owner);
    expect(await spread(PER_PRINCIPAL * 2, (i) => elsewhere(api, i).get(APPLICATIONS))).toEqual({
      200: PER_PRINCIPAL,
      429: PER_PRINCIPAL,
    });
    const address = newAddress();
    const signIn = (i: number) =>
      at(fleet.api, i).with(address).post('/api/v1/auth/sign-in', { email: owner.email, password: PASSWORD });
    expect(await spread(SIGN_INS * 2, signIn)).toEqual({ 200: SIGN_INS, 429: SIGN_INS });
    const { session } = await newOwner();
    const applicationId = await createApplication(elsewhere(session, 0));
    const keys = [
      (await createKey({ ...owner, session: elsewhere(session, 0) })).api,
      (await createKey({ ...owner, session: elsewhere(session, 1) })).api,
    ];
    const rotate = (i: number) =>
      elsewhere(keys[i % 2] ?? api, i >> 1).patch(
        '/api/v1/panel/update-api-keys',
        { type: i % 3 ? 'socketKey' : 'httpKey' },
        { applicationId },
      );
    expect(await spread(50, rotate)).toEqual({ 200: 2, 429: 48 });
    // One upload at a time over both, and the next as soon as it has ended.
    const running = await startUpload(elsewhere(session, 0), { applicationId, fileName: 'first' });
    await running.send(new Uint8Array(1_000));
    expect(outcome(await upload(elsewhere(session, 1), applicationId, 'second'))).toBe('429 rate_limit_reached');
    expect(outcome(await running.finish())).toBe('200');
    const statuses = [];
    for (let i = 2; i < UPLOADS + 2; i += 1)
      statuses.push((await upload(elsewhere(session, i), applicationId, `file-${i}`)).status);
    expect(statuses).toEqual([...Array(UPLOADS - 2).fill(200), 429, 429]);
  });
});

describe.runIf(isDeployed)('services start in any order', () => {
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

  it('and wait for PostgreSQL, Redis and one another without a restart', async () => {
    const database = await createEmptyTestDatabase();
    const proxies = { postgres: await startTcpProxy(database.url), redis: await startTcpProxy((await testRedis()).url) };
    await Promise.all(Object.values(proxies).map((proxy) => proxy.cut()));
    const fleet = await startFleet({ count: 1, start: false, databaseUrl: proxies.postgres.url, redisUrl: proxies.redis.url });
    onTestFinished(async () => {
      await fleet.stop();
      await Promise.all(Object.values(proxies).map((proxy) => proxy.close()));
      await database.drop();
    });
    // Those that call start before those that they call.
    const order: readonly FleetService[] = ['gateway', 'realtime', 'files', 'identity'];
    const ended: string[] = [];
    const launch = async (one: FleetProcess) => {
      await one.launch();
      void one.exited.then(() => ended.push(one.name));
    };
    for (const service of order) await launch(fleet.process(service));
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
    await fleet.process('apps').kill();
    for (const service of ['gateway', 'realtime'] as const)
      await eventually(async () => expect(await probes(fleet.process(service))).toEqual([200, 503]), READY);
    await fleet.process('apps').start();
    for (const one of fleet.processes) await one.ready();
    await expectWorking(fleet);
    expect(ended).toEqual(['apps-1']);
    // One that waits for PostgreSQL ends well.
    await proxies.postgres.cut();
    const files = fleet.process('files');
    await files.stop();
    await files.launch();
    await eventually(() => files.lines.some((line) => line.includes('waiting for the database')), READY);
    expect(await files.stop()).toMatchObject({ code: 0, signal: null });
  });
});
