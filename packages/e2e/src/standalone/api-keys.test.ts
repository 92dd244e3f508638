import { SCOPES } from '@latchkey/contract/scopes';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it } from 'vitest';
import { createApplication, createKey, type Owner, readState, signUp } from '../client/caller.ts';
import { outcome } from '../client/files.ts';

const PATH = '/api/v1/panel/api-keys';
const FUTURE = '2999-01-01T00:00:00.000Z';
const NEVER = '01900000-0000-7000-8000-00000000dead';

let owner: Owner;
let application: string;
beforeAll(async () => {
  owner = await signUp();
  application = await createApplication(owner.session);
});

const valid = { name: 'Some key', scopes: ['applications:read'], allApplications: true };
const change = (id: string, body: object) => owner.session.patch(`${PATH}/${id}`, body);

describe('a new key', () => {
  it('may have a name of 64 characters, every scope and an end in another time zone', async () => {
    const given = { name: ` ${'😀'.repeat(64)}\u200b`, scopes: SCOPES, expiresAt: '2999-01-01T02:30:00+02:30' };
    const expected = { name: '😀'.repeat(64), scopes: expect.arrayContaining([...SCOPES]), expiresAt: FUTURE };
    expect(await (await signUp()).session.post(PATH, { ...valid, ...given })).toMatchObject({ status: 200, data: expected });
  });

  it('rejects all other settings', async () => {
    const before = await readState(owner);
    const some = (applicationIds?: unknown) => ({ allApplications: false, applicationIds });
    const bad = [
      ...[undefined, ' ab ', 'a'.repeat(65), 123].map((name) => ({ name })),
      ...[undefined, [], ['files:read', 'files:read'], ['constructor'], 'files:read'].map((scopes) => ({ scopes })),
      ...[{ allApplications: 'true' }, { applicationIds: [NEVER] }, some(), some([]), some([1]), some('x'), { id: NEVER }],
      ...['2001-01-01T00:00:00.000Z', 32_503_680_000_000, '2999-01-01', '2999-01-01T00:00:00', '2999-02-30T00:00:00Z'].map(
        (expiresAt) => ({ expiresAt }),
      ),
      ...['tomorrow', '9999-12-31T23:59:59-12:00', ''].map((expiresAt) => ({ expiresAt })),
    ];
    for (const given of bad)
      expect(outcome(await owner.session.post(PATH, { ...valid, ...given })), JSON.stringify(given)).toBe('400 VALIDATION_ERROR');
    expect(await readState(owner)).toBe(before);
  });

  it('shows its text once', async () => {
    const { text, id } = await createKey(owner);
    const answers = [
      await owner.session.get(PATH),
      await change(id, { name: 'Shown again?' }),
      await owner.session.post(`${PATH}/${id}/revoke`),
    ];
    for (const answer of answers) expect(answer.text).not.toMatch(new RegExp(`${text.slice(-48)}|plaintextKey`));
  });
});

describe('a change of a key', () => {
  it('may not be malformed, contradict what the key has, or be made to a revoked key', async () => {
    const some = [{}, { allApplications: true, applicationIds: [NEVER] }, { allApplications: false, applicationIds: [] }];
    for (const body of [...some, { scopes: [] }, { name: null }, { revokedAt: null }, { nickname: 'x' }])
      expect(outcome(await change(NEVER, body)), JSON.stringify(body)).toBe('400 VALIDATION_ERROR');
    const open = await createKey(owner);
    expect(outcome(await change(open.id, { applicationIds: [application] }))).toBe('400 bad_request');
    const revoke = () => owner.session.post(`${PATH}/${open.id}/revoke`);
    expect((await revoke()).data).toEqual((await revoke()).data);
    expect(outcome(await change(open.id, { name: 'Back again' }))).toBe('400 bad_request');
  });
});

it('an owner sees when and from where a key was last used', async () => {
  const { api, id } = await createKey(owner);
  const before = new Date().toISOString();
  await api.get('/api/v1/panel/get-applications');
  const record = (await owner.session.get(PATH)).data.find((key: { id: string }) => key.id === id);
  expect(record).toMatchObject({ lastUsedIp: '127.0.0.1', revokedAt: null });
  expect(record.lastUsedAt >= before).toBe(true);
});

it('a restricted key sees only its applications, creates none, and stays restricted when one is deleted', async () => {
  const { session } = await signUp();
  const [first, second, stays] = [
    await createApplication(session),
    await createApplication(session),
    await createApplication(session),
  ];
  const { api, id } = await createKey({ ...owner, session }, { applicationIds: [second, first] });
  const reach = (applicationId: string) => api.get('/api/v1/panel/get-application-settings', { applicationId }).then(outcome);
  const listed = async () => (await api.get('/api/v1/panel/get-applications')).data.map((one: { id: string }) => one.id);
  expect(await listed()).toEqual([first, second]);
  expect(outcome(await api.post('/api/v1/panel/create-application', { name: 'Another one' }))).toBe('403 application_forbidden');
  for (const applicationId of [first, second])
    await session.delete('/api/v1/panel/delete-application', { applicationId, code: '' });
  expect(await listed()).toEqual([]);
  expect([await reach(stays), await reach(first)]).toEqual(['403 application_forbidden', '404 not_found']);
  // The restriction itself is removed by a queue's job.
  const record = async () => (await session.get(PATH)).data.find((one: { id: string }) => one.id === id);
  await eventually(async () => expect(await record()).toMatchObject({ allApplications: false, applicationIds: [] }), {
    timeoutMs: 15_000,
  });
  expect(await reach(stays)).toBe('403 application_forbidden');
  expect(outcome(await session.patch(`${PATH}/${id}`, { applicationIds: [] }))).toBe('400 bad_request');
  expect((await session.patch(`${PATH}/${id}`, { applicationIds: [stays] })).data.applicationIds).toEqual([stays]);
});
