import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/postgres/database';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/redis/own-redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../client/api.ts';
import { createApplication, createKey, type Key, type Owner, PASSWORD, signUp, unique } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { LiveClient, readSocketKey, setSetting } from '../client/live.ts';
import { type DedicatedInstance, startDedicatedInstance } from '../instance/dedicated-instance.ts';
import { findLogLines } from '../instance/instance.ts';

/** R9: responses while PostgreSQL or Redis is gone or frozen. */
const ERROR_MS_MAX = 5_000;
const RECOVERY = { timeoutMs: 10_000, intervalMs: 100 };
/** Polling interval of events, and a second for a busy machine. */
const HEARD_MS_MAX = 3_000;
const LIMIT = 60;
const mayFail = { mayFail: true };

let database: TestDatabase;
let proxy: TcpProxy;
let redis: OwnRedis;
let instance: DedicatedInstance;
let owner: Owner;
let key: Key;
let applicationId: string;
beforeAll(async () => {
  [database, redis] = await Promise.all([createEmptyTestDatabase(), startOwnRedis()]);
  proxy = await startTcpProxy(database.url);
  const env = { RATE_LIMIT_PRINCIPAL_PER_MINUTE: String(LIMIT) };
  instance = await startDedicatedInstance({ databaseUrl: proxy.url, redisUrl: redis.url, env });
  owner = await signUp(instance.api);
  key = await createKey(owner);
  applicationId = await createApplication(key.api);
});
afterAll(async () => {
  await instance.stop();
  await proxy.close();
  await Promise.all([database.drop(), redis.remove()]);
});

const SETTINGS = '/api/v1/panel/get-application-settings';
const read = (api: Api) => api.get(SETTINGS, { applicationId }, mayFail);
async function timed<T>(run: () => Promise<T>): Promise<{ answer: T; ms: number }> {
  const startedAt = performance.now();
  return { answer: await run(), ms: performance.now() - startedAt };
}

describe.each([
  ['gone', () => proxy.cut()],
  ['frozen', async () => proxy.freeze()],
])('with PostgreSQL %s', (_what, breakDatabase) => {
  it('dependent requests fail within 5 s as documented, and succeed within 10 s of its return', async () => {
    const { session, email } = await signUp(instance.api);
    const { api } = await createKey({ ...owner, session });
    const newAccount = { username: unique('u'), email: `${unique('u')}@example.com`, password: PASSWORD };
    const requests: Array<() => Promise<Answer>> = [
      () => read(api),
      () => api.post('/api/v1/panel/create-application', { name: unique('app-') }, undefined, mayFail),
      () => session.get('/api/v1/panel/api-keys', undefined, mayFail),
      () => instance.api.post('/api/v1/auth/sign-in', { email, password: PASSWORD }, undefined, mayFail),
      () => instance.api.post('/api/v1/auth/sign-up', newAccount, undefined, mayFail),
    ];
    await breakDatabase();
    for (const { answer, ms } of await Promise.all(requests.flatMap((send) => [timed(send), timed(send)]))) {
      expect(outcome(answer)).toBe('503 INTERNAL_ERROR');
      expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(answer.message).toContain(answer.headers.get('x-request-id'));
      expect(ms).toBeLessThan(ERROR_MS_MAX);
    }
    expect((await instance.api.get('/api/v1/panel/get-applications')).code).toBe('api_key_invalid');
    expect((await instance.api.post('/api/v1/auth/sign-in', {})).code).toBe('VALIDATION_ERROR');
    expect((await fetch(`${instance.baseUrl}/healthz`)).status).toBe(200);
    await eventually(async () => expect((await fetch(`${instance.baseUrl}/readyz`)).status).toBe(503));
    await proxy.restore();
    await eventually(async () => (await fetch(`${instance.baseUrl}/readyz`)).status === 200, RECOVERY);
    await eventually(
      async () => (await session.get('/api/v1/panel/get-applications', undefined, mayFail)).status === 200,
      RECOVERY,
    );
  });
});

it('a failure is in the log under the id that the client got', async () => {
  const requestId = unique('outage-');
  await proxy.cut();
  const { message } = await owner.session.with({ 'x-request-id': requestId }).get('/api/v1/panel/api-keys', undefined, mayFail);
  await proxy.restore();
  expect(message).toContain(requestId);
  await eventually(async () => {
    const lines = (await findLogLines(instance.logDir, requestId)).map((line) => JSON.parse(line) as object);
    expect(lines).toContainEqual(expect.objectContaining({ service: 'identity', msg: 'rpc failed', requestId }));
    expect(lines).toContainEqual(expect.objectContaining({ service: 'gateway', msg: 'request', requestId, status: 503 }));
  });
});

describe.each([
  ['frozen', async () => redis.freeze(), async () => redis.thaw()],
  ['gone', () => redis.stop(), () => redis.start()],
])('with Redis %s', (_what, breakRedis, repair) => {
  it('reads and writes go on, limits hold in each process, revocations hold, and events are received', async () => {
    const other = await signUp(instance.api);
    const [known, limited, revoked] = [await createKey(other), await createKey(other), await createKey(other)];
    const list = (api: Api) => api.get('/api/v1/panel/get-applications');
    const id = await createApplication(other.session);
    const client = new LiveClient(instance.realtimeUrl, await readSocketKey(other.session, id));
    await client.ready();
    for (const { api } of [known, revoked]) expect((await list(api)).status).toBe(200);
    await breakRedis();
    const steps: Array<() => Promise<Answer>> = [
      () => list(known.api),
      () => setSetting(known.api, id, 'version', '2.0'),
      async () => (await signUp(instance.api)).session.get('/api/v1/auth/session'),
      async () => list((await createKey(other)).api),
    ];
    for (const [i, step] of steps.entries()) {
      const { answer, ms } = await timed(step);
      expect([i, answer.status, ms < 2_000]).toEqual([i, 200, true]);
    }
    expect((await other.session.post(`/api/v1/panel/api-keys/${revoked.id}/revoke`)).status).toBe(200);
    await eventually(() => expect(client.received()).toEqual(['version_changed 2.0']), { timeoutMs: HEARD_MS_MAX });
    const answers = await Promise.all(Array.from({ length: LIMIT + 10 }, () => list(limited.api)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(LIMIT);
    expect(outcome(await list(revoked.api))).toBe('401 api_key_revoked');
    await repair();
    for (let i = 0; i < 3; i += 1) expect(outcome(await list(revoked.api))).toBe('401 api_key_revoked');
    // By polling alone, an event would take a second on average.
    let version = 2;
    await eventually(async () => {
      version += 1;
      await setSetting(known.api, id, 'version', `${version}.0`);
      const answeredAt = performance.now();
      await eventually(() => client.received().at(-1) === `version_changed ${version}.0`, { intervalMs: 5 });
      expect(performance.now() - answeredAt).toBeLessThan(200);
    }, RECOVERY);
    expect(client.sequences()).toEqual(Array.from({ length: version - 1 }, (_, i) => i + 1));
    client.ws.terminate();
  });
});

it('without a mail server, what needs one is rejected as not configured', async () => {
  const { session } = await signUp(instance.api);
  const send = async (path: string, body: object) =>
    outcome(await session.post(`/api/v1/auth/${path}`, body, undefined, mayFail));
  const outcomes = [
    await send('password/forgot', { email: 'ada@example.com' }),
    await send('email/change', { email: 'ada@example.com', password: PASSWORD }),
    await send('email/confirm', { token: 'a token' }),
  ];
  expect(outcomes).toEqual(Array(3).fill('503 mail_not_configured'));
});
