import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { createApplication, createKey, type Key, type Owner, signUp } from '../testing/caller.ts';

/** What takes effect takes it on the very next request (decisions 5), though a gateway remembers who a credential was. */
let owner: Owner;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
});

const read = (api: Api) => api.get('/api/v1/panel/get-application-settings', { applicationId });
const outcome = ({ status, code }: Answer) => `${status} ${code}`;

/** A key that the gateway has just seen, several times. */
async function knownKey(): Promise<Key> {
  const key = await createKey(owner);
  for (let i = 0; i < 3; i += 1) expect(outcome(await read(key.api))).toBe('200 ');
  return key;
}

const change = (key: Key, body: object) => owner.session.patch(`/api/v1/panel/api-keys/${key.id}`, body);
const revoke = (key: Key) => owner.session.post(`/api/v1/panel/api-keys/${key.id}/revoke`);

describe('on the very next request, a key', () => {
  it('that was revoked is refused', async () => {
    const key = await knownKey();
    await revoke(key);
    expect(outcome(await read(key.api))).toBe('401 api_key_revoked');
  });

  it('that lost a scope is refused, and let in when it has it again', async () => {
    const key = await knownKey();
    await change(key, { scopes: ['files:read'] });
    expect(outcome(await read(key.api))).toBe('403 insufficient_scope');
    await change(key, { scopes: ['applications:read'] });
    expect(outcome(await read(key.api))).toBe('200 ');
    await revoke(key);
  });

  it('that lost an application is refused there', async () => {
    const other = await createApplication(owner.session);
    const key = await knownKey();
    await change(key, { allApplications: false, applicationIds: [other] });
    expect(outcome(await read(key.api))).toBe('403 application_forbidden');
    expect((await key.api.get('/api/v1/panel/get-applications')).data).toHaveLength(1);
    await change(key, { allApplications: true });
    expect(outcome(await read(key.api))).toBe('200 ');
    await revoke(key);
  });

  it('that has expired is refused, though it was used until then', async () => {
    const expiresAt = Date.now() + 2_000;
    const key = await createKey(owner, { expiresAt: new Date(expiresAt).toISOString() });
    const answers: Array<{ sentAt: number; answeredAt: number; outcome: string }> = [];
    while (answers.at(-1)?.outcome !== '401 api_key_expired') {
      const sentAt = Date.now();
      const answer = await read(key.api);
      answers.push({ sentAt, answeredAt: Date.now(), outcome: outcome(answer) });
      expect(answers.length).toBeLessThan(10_000);
    }
    expect(answers[0]?.outcome).toBe('200 ');
    for (const answer of answers) {
      if (answer.sentAt >= expiresAt) expect(answer.outcome).toBe('401 api_key_expired');
      if (answer.answeredAt < expiresAt) expect(answer.outcome).toBe('200 ');
    }
  });

  it('whose end was moved to soon is refused from then on', async () => {
    const key = await knownKey();
    const expiresAt = Date.now() + 1_500;
    await change(key, { expiresAt: new Date(expiresAt).toISOString() });
    expect(outcome(await read(key.api))).toBe('200 ');
    await eventually(async () => outcome(await read(key.api)) === '401 api_key_expired');
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAt);
    expect(Date.now()).toBeLessThan(expiresAt + 1_000);
  });

  it('cannot reach an application that was deleted, nor can a session', async () => {
    const key = await knownKey();
    const id = await createApplication(key.api);
    const settings = (api: Api) => api.get('/api/v1/panel/get-application-settings', { applicationId: id });
    expect(outcome(await settings(key.api))).toBe('200 ');
    await key.api.delete('/api/v1/panel/delete-application', { applicationId: id, code: '' });
    expect(outcome(await settings(key.api))).toBe('404 not_found');
    expect(outcome(await settings(owner.session))).toBe('404 not_found');
    await revoke(key);
  });
});

describe('on the very next request, a session', () => {
  it('that was signed out of is refused, and others of the account are not', async () => {
    const { session, email, password } = await signUp();
    expect(outcome(await session.get('/api/v1/auth/session'))).toBe('200 ');
    const second = await session.with({ cookie: '', 'x-csrf-token': '' }).post('/api/v1/auth/sign-in', { email, password });
    const [cookie = ''] = (second.headers.get('set-cookie') ?? '').split(';');
    await session.post('/api/v1/auth/sign-out');
    expect(outcome(await session.get('/api/v1/auth/session'))).toBe('401 unauth');
    expect(outcome(await session.post('/api/v1/auth/sign-out'))).toBe('401 unauth');
    expect(outcome(await session.with({ cookie, 'x-csrf-token': '' }).get('/api/v1/auth/session'))).toBe('200 ');
  });
});

describe('under load, no request that begins after a revocation was answered is let in', () => {
  const READERS = 16;

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
    const reading = Promise.all(Array.from({ length: READERS }, reader));
    await eventually(() => requests.length > READERS * 5);
    expect(outcome(await end())).toBe('200 ');
    const endedAt = performance.now();
    await reading;
    expect(requests.filter(({ startedAt, ok }) => ok && startedAt > endedAt)).toEqual([]);
  }

  it('of a key', async () => {
    const key = await createKey(owner);
    await expectNoneAfter(key.api, '/api/v1/panel/get-applications', () => revoke(key));
  });

  it('of the scope of a key', async () => {
    const key = await createKey(owner);
    await expectNoneAfter(key.api, '/api/v1/panel/get-applications', () => change(key, { scopes: ['files:read'] }));
  });

  it('of a session', async () => {
    const { session } = await signUp();
    await expectNoneAfter(session, '/api/v1/auth/session', () => session.post('/api/v1/auth/sign-out'));
  });
});
