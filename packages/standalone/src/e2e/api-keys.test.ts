import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, describe, expect, it } from 'vitest';
import { createApplication, createKey, type Owner, readState, SCOPES, signUp } from '../testing/caller.ts';
import { outcome } from '../testing/files.ts';

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
  it.each([
    [{ name: '  abc\t' }, { name: 'abc' }],
    [{ name: ' \u202eCafe\u0301\0\n\u200b' }, { name: 'Caf\u00e9' }],
    [{ name: '😀'.repeat(64) }, { name: '😀'.repeat(64) }],
    [{ scopes: ['account:read'] }, { scopes: ['account:read'] }],
    [{ scopes: [...SCOPES].reverse() }, { scopes: expect.arrayContaining([...SCOPES]) }],
    [{ applicationIds: [] }, { allApplications: true, applicationIds: [] }],
    [{ expiresAt: '2999-01-01T02:30:00+02:30' }, { expiresAt: FUTURE }],
    [{ expiresAt: null }, { expiresAt: null }],
  ])('may have %j', async (given, expected) => {
    expect(await (await signUp()).session.post(PATH, { ...valid, ...given })).toMatchObject({ status: 200, data: expected });
  });

  it('may have nothing else', async () => {
    const before = await readState(owner);
    const some = (applicationIds?: unknown) => ({ allApplications: false, applicationIds });
    const bad = [
      ...[undefined, ' ab ', 'a'.repeat(65), 123, '\u202ea\nb\u200b'].map((name) => ({ name })),
      ...[undefined, [], ['applications:read', 'x'], ['files:read', 'files:read'], ['FILES:READ'], 'files:read'].map(
        (scopes) => ({ scopes }),
      ),
      ...[{ scopes: ['constructor'] }, { allApplications: undefined }, { allApplications: 'true' }, { applicationIds: [NEVER] }],
      ...[some(), some([]), some([1]), some('x'), { plaintextKey: 'mine' }, { id: NEVER }],
      ...['2001-01-01T00:00:00.000Z', new Date().toISOString(), 32_503_680_000_000, '2999-01-01'].map((expiresAt) => ({
        expiresAt,
      })),
      ...['2999-01-01T00:00:00', '2999-02-30T00:00:00Z', 'tomorrow', '9999-12-31T23:59:59-12:00', ''].map((expiresAt) => ({
        expiresAt,
      })),
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
  it('leaves what is not given, and opens and restricts', async () => {
    const { id, record } = await createKey(owner, { expiresAt: FUTURE });
    const { data } = await change(id, { scopes: ['files:read'] });
    expect(data).toEqual({ ...record, scopes: ['files:read'], updatedAt: data.updatedAt });
    expect(data.updatedAt > record.updatedAt).toBe(true);
    expect((await change(id, { expiresAt: null })).data.expiresAt).toBeNull();
    const restricted = { allApplications: false, applicationIds: [application] };
    expect((await change(id, { ...restricted, applicationIds: [application, application.toUpperCase()] })).data).toMatchObject(
      restricted,
    );
    expect((await change(id, { allApplications: true })).data).toMatchObject({ allApplications: true, applicationIds: [] });
  });

  it.each([
    ...[{}, { allApplications: true, applicationIds: [NEVER] }, { allApplications: false, applicationIds: [] }, { scopes: [] }],
    ...[{ name: null }, { expiresAt: '2001-01-01T00:00:00Z' }, { revokedAt: null }, { nickname: 'x' }],
  ])('may not be %j', async (body) => {
    expect(outcome(await change(NEVER, body))).toBe('400 VALIDATION_ERROR');
  });

  it('may not contradict what the key has, nor be made to a revoked key; revoking again changes nothing', async () => {
    const open = await createKey(owner);
    const restricted = await createKey(owner, { applicationIds: [application] });
    expect(outcome(await change(open.id, { applicationIds: [application] }))).toBe('400 bad_request');
    expect(outcome(await change(restricted.id, { applicationIds: [] }))).toBe('400 bad_request');
    expect(outcome(await change(open.id, { allApplications: false }))).toBe('400 bad_request');
    const revoke = () => owner.session.post(`${PATH}/${open.id}/revoke`);
    expect((await revoke()).data).toEqual((await revoke()).data);
    expect(outcome(await change(open.id, { name: 'Back again' }))).toBe('400 bad_request');
  });
});

it('an account has twenty active keys at most; revoked ones make room', async () => {
  const { session } = await signUp();
  const answers = await Promise.all(Array.from({ length: 23 }, () => session.post(PATH, valid)));
  expect(answers.filter(({ success }) => !success).map(outcome)).toEqual(Array(3).fill('403 limit_exceeded'));
  const list = (await session.get(PATH)).data;
  await session.post(`${PATH}/${list[0].id}/revoke`);
  expect([outcome(await session.post(PATH, valid)), outcome(await session.post(PATH, valid))]).toEqual([
    '200',
    '403 limit_exceeded',
  ]);
});

it('an owner sees when and from where a key was last used', async () => {
  const { api, id } = await createKey(owner);
  const before = new Date().toISOString();
  await api.get('/api/v1/panel/get-applications');
  const record = (await owner.session.get(PATH)).data.find((key: { id: string }) => key.id === id);
  expect(record).toMatchObject({ lastUsedIp: '127.0.0.1', revokedAt: null });
  expect(record.lastUsedAt >= before).toBe(true);
});

it('a restricted key sees its applications alone, creates none, and loses a deleted one without becoming open', async () => {
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
