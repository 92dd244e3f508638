import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../client/api.ts';
import { createApplication, createKey, type Key, type Owner, signUp } from '../client/caller.ts';
import { outcome } from '../client/files.ts';

/** Changes take effect on the very next request (specification 5.4), though gateways cache. */
let owner: Owner;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
});

const read = async (api: Api, id = applicationId) =>
  outcome(await api.get('/api/v1/panel/get-application-settings', { applicationId: id }));
const change = (key: Key, body: object) => owner.session.patch(`/api/v1/panel/api-keys/${key.id}`, body);
const revoke = (key: Key) => owner.session.post(`/api/v1/panel/api-keys/${key.id}/revoke`);

/** A key that the gateway has just seen several times. */
async function knownKey(): Promise<Key> {
  const key = await createKey(owner);
  for (let i = 0; i < 3; i += 1) expect(await read(key.api)).toBe('200');
  return key;
}

describe('on the very next request', () => {
  it('a key that lost a scope, or the application, is rejected, and let in when it has it again', async () => {
    const key = await knownKey();
    const other = await createApplication(owner.session);
    const steps: Array<[object, string]> = [
      [{ scopes: ['files:read'] }, '403 insufficient_scope'],
      [{ scopes: ['applications:read'] }, '200'],
      [{ allApplications: false, applicationIds: [other] }, '403 application_forbidden'],
      [{ allApplications: true }, '200'],
    ];
    for (const [body, expected] of steps) {
      await change(key, body);
      expect(await read(key.api), JSON.stringify(body)).toBe(expected);
    }
  });

  it('a key is rejected from its end on, which may be moved, and not before', async () => {
    const key = await knownKey();
    const expiresAt = Date.now() + 1_500;
    await change(key, { expiresAt: new Date(expiresAt).toISOString() });
    expect(await read(key.api)).toBe('200');
    await eventually(async () => (await read(key.api)) === '401 api_key_expired', { intervalMs: 1 });
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAt);
    expect(Date.now()).toBeLessThan(expiresAt + 1_000);
  });
});

describe('under load, no request that begins after a response to it is let in', () => {
  async function expectNoneAfter(api: Api, path: string, end: () => Promise<Answer>) {
    const requests: Array<{ startedAt: number; ok: boolean }> = [];
    const reader = async () => {
      for (let refused = 0; refused < 3; ) {
        const startedAt = performance.now();
        const { status } = await api.get(path);
        requests.push({ startedAt, ok: status === 200 });
        if (status !== 200) refused += 1;
      }
    };
    const reading = Promise.all(Array.from({ length: 16 }, reader));
    await eventually(() => requests.length > 80);
    expect(outcome(await end())).toBe('200');
    const endedAt = performance.now();
    await reading;
    expect(requests.filter(({ startedAt, ok }) => ok && startedAt > endedAt)).toEqual([]);
  }

  it('after a revocation of a key, or of its scope', async () => {
    for (const end of [revoke, (key: Key) => change(key, { scopes: ['files:read'] })]) {
      const key = await createKey(owner);
      await expectNoneAfter(key.api, '/api/v1/panel/get-applications', () => end(key));
    }
  });

  it('after the end of a session', async () => {
    const { session } = await signUp();
    await expectNoneAfter(session, '/api/v1/auth/session', () => session.post('/api/v1/auth/sign-out'));
  });
});
