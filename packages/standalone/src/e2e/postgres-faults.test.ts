import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/tcp-proxy';
import { withClient } from '@latchkey/testkit/with-client';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { createApplication, createKey, type Key, type Owner, PASSWORD, signUp, unique } from '../testing/caller.ts';
import { findLogLines } from '../testing/instance.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';

/** Promises R9: with PostgreSQL gone or frozen, errors within 5 s, never a hang; recovery within 10 s of its return, without a restart. */
const ERROR_WITHIN_MS = 5_000;
const RECOVERY_WITHIN_MS = 10_000;

let database: TestDatabase;
let proxy: TcpProxy;
let instance: OwnInstance;
let owner: Owner;
let key: Key;
let applicationId: string;
beforeAll(async () => {
  database = await createEmptyTestDatabase();
  proxy = await startTcpProxy(database.url);
  instance = await startOwnInstance({ databaseUrl: proxy.url });
  owner = await signUp(instance.api);
  key = await createKey(owner);
  applicationId = await createApplication(key.api);
});
afterEach(() => proxy.restore());
afterAll(async () => {
  await instance.stop();
  await proxy.close();
  await database.drop();
});

const mayFail = { mayFail: true };

/** Requests that all need the database, of callers that the gateway knows and of others. */
const requests = (): Array<() => Promise<Answer>> => [
  () => key.api.get('/api/v1/panel/get-applications', undefined, mayFail),
  () => key.api.get('/api/v1/panel/get-application-settings', { applicationId }, mayFail),
  () => key.api.post('/api/v1/panel/create-application', { name: unique('app-') }, undefined, mayFail),
  () =>
    key.api.patch('/api/v1/panel/update-application-settings', { field: 'status', value: 'paused' }, { applicationId }, mayFail),
  () => owner.session.get('/api/v1/panel/api-keys', undefined, mayFail),
  () => owner.session.post(`/api/v1/panel/api-keys/${key.id}/revoke`, null, undefined, mayFail),
  () => instance.api.post('/api/v1/auth/sign-in', { email: owner.email, password: PASSWORD }, undefined, mayFail),
  () =>
    instance.api.post(
      '/api/v1/auth/sign-up',
      { username: unique('u'), email: `${unique('u')}@example.com`, password: PASSWORD },
      undefined,
      mayFail,
    ),
];

const read = (api: Api) => api.get('/api/v1/panel/get-application-settings', { applicationId }, mayFail);

async function timed<T>(run: () => Promise<T>): Promise<{ answer: T; ms: number }> {
  const startedAt = performance.now();
  const answer = await run();
  return { answer, ms: performance.now() - startedAt };
}

describe.each([
  ['gone', () => proxy.cut()],
  ['frozen', async () => proxy.freeze()],
])('with PostgreSQL %s', (_what, breakDatabase) => {
  it('every request that needs it fails soon, as the specification says, and works again soon after', async () => {
    await breakDatabase();
    const outcomes = await Promise.all(requests().flatMap((send) => [timed(send), timed(send), timed(send)]));
    for (const { answer, ms } of outcomes) {
      expect([answer.status, answer.code]).toEqual([503, 'INTERNAL_ERROR']);
      expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(answer.message).toContain(answer.headers.get('x-request-id'));
      expect(ms).toBeLessThan(ERROR_WITHIN_MS);
    }
    await proxy.restore();
    await eventually(async () => (await read(owner.session)).status === 200, { timeoutMs: RECOVERY_WITHIN_MS, intervalMs: 100 });
    const after = await Promise.all(Array.from({ length: 20 }, () => read(owner.session)));
    expect(new Set(after.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await owner.session.get('/api/v1/panel/get-applications')).status).toBe(200);
  });

  it('what needs no database is answered as ever', async () => {
    await breakDatabase();
    expect((await instance.api.get('/api/v1/panel/get-applications')).code).toBe('api_key_invalid');
    expect((await instance.api.get('/nowhere')).code).toBe('not_found');
    expect((await instance.api.post('/api/v1/auth/sign-in', {})).code).toBe('VALIDATION_ERROR');
    expect((await fetch(`${instance.baseUrl}/healthz`)).status).toBe(200);
    // An answer stands for a quarter of a second, so that the one before may still say otherwise.
    await eventually(async () => {
      const ready = await timed(() => fetch(`${instance.baseUrl}/readyz`));
      expect([ready.answer.status, ready.ms < ERROR_WITHIN_MS]).toEqual([503, true]);
    });
    await proxy.restore();
    await eventually(async () => (await fetch(`${instance.baseUrl}/readyz`)).status === 200, { timeoutMs: RECOVERY_WITHIN_MS });
  });
});

describe('a failure', () => {
  it('is in the log under the id that the client was told', async () => {
    await proxy.cut();
    const requestId = unique('outage-');
    const { message, headers } = await owner.session
      .with({ 'x-request-id': requestId })
      .get('/api/v1/panel/api-keys', undefined, mayFail);
    await proxy.restore();
    expect(headers.get('x-request-id')).toBe(requestId);
    expect(message).toContain(requestId);
    await eventually(async () => {
      const lines = (await findLogLines(instance.logDir, requestId)).map(
        (line) => JSON.parse(line) as { service: string; msg: string },
      );
      expect(lines).toContainEqual(expect.objectContaining({ service: 'identity', msg: 'rpc failed', requestId }));
      expect(lines).toContainEqual(expect.objectContaining({ service: 'gateway', msg: 'request', requestId, status: 503 }));
    });
  });
});

describe('connections that the server ends', () => {
  it('cost at most the requests under way, and none after', async () => {
    await eventually(async () => (await read(owner.session)).status === 200, { timeoutMs: RECOVERY_WITHIN_MS });
    const { postgresUrl } = inject('latchkeyTestServers');
    for (let round = 0; round < 3; round += 1) {
      const underWay = Array.from({ length: 20 }, () => read(owner.session));
      await withClient(postgresUrl, (client) =>
        client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [database.name]),
      );
      for (const { status } of await Promise.all(underWay)) expect([200, 503]).toContain(status);
      await eventually(async () => (await read(owner.session)).status === 200);
    }
  });
});
