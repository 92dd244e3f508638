import { beforeAll, describe, expect, it } from 'vitest';
import { createApplication, createKey, type Owner, readState, SCOPES, signUp } from '../testing/caller.ts';

const PATH = '/api/v1/panel/api-keys';
const FUTURE = '2999-01-01T00:00:00.000Z';

let owner: Owner;
let application: string;
beforeAll(async () => {
  owner = await signUp();
  application = await createApplication(owner.session);
});

const valid = { name: 'Some key', scopes: ['applications:read'], allApplications: true };

describe('a new key', () => {
  it.each([
    ['a name of 3 characters after trimming', { name: '  abc\t' }, { name: 'abc' }],
    ['a name in NFC without invisible characters', { name: ' \u202eCafe\u0301\0\n\u200b' }, { name: 'Caf\u00e9' }],
    ['a name of 64 characters', { name: '😀'.repeat(64) }, { name: '😀'.repeat(64) }],
    ['one scope', { scopes: ['account:read'] }, { scopes: ['account:read'] }],
    ['all scopes in any order', { scopes: [...SCOPES].reverse() }, { scopes: expect.arrayContaining([...SCOPES]) }],
    ['an empty list of applications', { applicationIds: [] }, { allApplications: true, applicationIds: [] }],
    ['an end', { expiresAt: FUTURE }, { expiresAt: FUTURE }],
    ['an end with an offset', { expiresAt: '2999-01-01T02:30:00+02:30' }, { expiresAt: FUTURE }],
    ['no end', { expiresAt: null }, { expiresAt: null }],
  ])('may have %s', async (_what, change, expected) => {
    const { status, data } = await (await signUp()).session.post(PATH, { ...valid, ...change });
    expect(status).toBe(200);
    expect(data).toMatchObject(expected);
  });

  it.each([
    ['no name', { name: undefined }],
    ['a name of 2 characters', { name: ' ab ' }],
    ['a name of 65 characters', { name: 'a'.repeat(65) }],
    ['a name that is a number', { name: 123 }],
    ['a name of 2 characters and invisible ones', { name: '\u202ea\nb\u200b' }],
    ['no scopes', { scopes: undefined }],
    ['an empty list of scopes', { scopes: [] }],
    ['an unknown scope', { scopes: ['applications:read', 'applications:write'] }],
    ['a scope twice', { scopes: ['files:read', 'files:read'] }],
    ['a scope in capitals', { scopes: ['FILES:READ'] }],
    ['scopes as text', { scopes: 'files:read' }],
    ['a scope of the prototype', { scopes: ['constructor'] }],
    ['no word about applications', { allApplications: undefined }],
    ['a word about applications that is text', { allApplications: 'true' }],
    ['some applications, and none named', { allApplications: false }],
    ['some applications, of none', { allApplications: false, applicationIds: [] }],
    ['all applications and a list', { applicationIds: ['01900000-0000-7000-8000-00000000dead'] }],
    ['applications that are numbers', { allApplications: false, applicationIds: [1] }],
    ['applications as text', { allApplications: false, applicationIds: 'x' }],
    ['an end in the past', { expiresAt: '2001-01-01T00:00:00.000Z' }],
    ['an end that is now', { expiresAt: new Date().toISOString() }],
    ['an end that is a number', { expiresAt: 32_503_680_000_000 }],
    ['an end without a time', { expiresAt: '2999-01-01' }],
    ['an end without a zone', { expiresAt: '2999-01-01T00:00:00' }],
    ['an end on no day', { expiresAt: '2999-02-30T00:00:00Z' }],
    ['an end that is no time', { expiresAt: 'tomorrow' }],
    ['an end past the year 9999', { expiresAt: '9999-12-31T23:59:59-12:00' }],
    ['an end that is empty', { expiresAt: '' }],
    ['a property that there is none such', { plaintextKey: 'mine' }],
    ['an id of its own', { id: '01900000-0000-7000-8000-00000000dead' }],
  ])('may not have %s', async (_what, change) => {
    const before = await readState(owner);
    const { status, code } = await owner.session.post(PATH, { ...valid, ...change });
    expect([status, code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(await readState(owner)).toBe(before);
  });

  it('shows its text once', async () => {
    const { text, id } = await createKey(owner);
    const secret = text.slice(-48);
    const answers = [await owner.session.get(PATH), await owner.session.patch(`${PATH}/${id}`, { name: 'Shown again?' })];
    answers.push(await owner.session.post(`${PATH}/${id}/revoke`));
    for (const answer of answers) {
      expect(answer.text).not.toContain(secret);
      expect(answer.text).not.toContain('plaintextKey');
    }
  });

  it('is restricted to each application once, however often and in whichever case it is named', async () => {
    const { record } = await createKey(owner, { applicationIds: [application, application.toUpperCase(), application] });
    expect(record.applicationIds).toEqual([application]);
  });
});

describe('a change of a key', () => {
  it('leaves what is not given', async () => {
    const { id, record } = await createKey(owner, { expiresAt: FUTURE });
    const { data } = await owner.session.patch(`${PATH}/${id}`, { scopes: ['files:read'] });
    expect(data).toEqual({ ...record, scopes: ['files:read'], updatedAt: data.updatedAt });
    expect(data.updatedAt > record.updatedAt).toBe(true);
    const cleared = await owner.session.patch(`${PATH}/${id}`, { expiresAt: null });
    expect(cleared.data.expiresAt).toBeNull();
  });

  it('opens and restricts, and the list follows', async () => {
    const { id } = await createKey(owner);
    const change = (body: object) => owner.session.patch(`${PATH}/${id}`, body);
    expect((await change({ allApplications: false, applicationIds: [application] })).data).toMatchObject({
      allApplications: false,
      applicationIds: [application],
    });
    expect((await change({ allApplications: true })).data).toMatchObject({ allApplications: true, applicationIds: [] });
  });

  it.each([
    ['nothing', {}],
    ['all applications and a list', { allApplications: true, applicationIds: ['01900000-0000-7000-8000-00000000dead'] }],
    ['some applications of none', { allApplications: false, applicationIds: [] }],
    ['no scopes', { scopes: [] }],
    ['a name that is null', { name: null }],
    ['an end in the past', { expiresAt: '2001-01-01T00:00:00Z' }],
    ['when it was revoked', { revokedAt: null }],
    ['an unknown property', { nickname: 'x' }],
  ])('may not be %s', async (_what, body) => {
    const { id } = await createKey(await signUp());
    const { status, code } = await owner.session.patch(`${PATH}/${id}`, body);
    expect([status, code]).toEqual([400, 'VALIDATION_ERROR']);
  });

  it.each([
    ['a list for a key that is open to all', { applicationIds: 'own' }],
    ['an empty list for a restricted key', { applicationIds: [] }],
    ['a restriction without a list', { allApplications: false }],
  ])('may not contradict what the key has: %s', async (what, body) => {
    const open = await createKey(owner);
    const restricted = await createKey(owner, { applicationIds: [application] });
    const { id } = what.includes('restricted key') ? restricted : open;
    const given = 'applicationIds' in body && body.applicationIds === 'own' ? { applicationIds: [application] } : body;
    const { status, code } = await owner.session.patch(`${PATH}/${id}`, given);
    expect([status, code]).toEqual([400, 'bad_request']);
    await Promise.all([open, restricted].map((key) => owner.session.post(`${PATH}/${key.id}/revoke`)));
  });

  it('may not be made to a revoked key', async () => {
    const { id } = await createKey(owner);
    await owner.session.post(`${PATH}/${id}/revoke`);
    const { status, code } = await owner.session.patch(`${PATH}/${id}`, { name: 'Back again' });
    expect([status, code]).toEqual([400, 'bad_request']);
  });
});

describe('revoking', () => {
  it('again changes nothing', async () => {
    const { id } = await createKey(owner);
    const first = await owner.session.post(`${PATH}/${id}/revoke`);
    const second = await owner.session.post(`${PATH}/${id}/revoke`);
    expect(second.data).toEqual(first.data);
  });
});

describe('an account', () => {
  it('has twenty active keys at most; revoked ones make room', async () => {
    const { session } = await signUp();
    const answers = await Promise.all(Array.from({ length: 23 }, () => session.post(PATH, valid)));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.map(({ status, code }) => `${status} ${code}`)).toEqual(Array(3).fill('403 limit_exceeded'));
    const list = (await session.get(PATH)).data;
    expect(list).toHaveLength(20);
    await session.post(`${PATH}/${list[0].id}/revoke`);
    expect((await session.post(PATH, valid)).status).toBe(200);
    expect((await session.post(PATH, valid)).code).toBe('limit_exceeded');
  });

  it('sees when and from where a key was last used', async () => {
    const { api, id } = await createKey(owner);
    const before = new Date().toISOString();
    await api.get('/api/v1/panel/get-applications');
    const record = (await owner.session.get(PATH)).data.find((key: { id: string }) => key.id === id);
    expect(record).toMatchObject({ lastUsedIp: '127.0.0.1', revokedAt: null });
    expect(record.lastUsedAt >= before).toBe(true);
  });
});

describe('a restricted key', () => {
  it('sees its applications and no others, and makes none', async () => {
    const other = await signUp();
    const [first, second] = [await createApplication(other.session), await createApplication(other.session)];
    await createApplication(other.session);
    const { api } = await createKey(other, { applicationIds: [second, first] });
    const { data } = await api.get('/api/v1/panel/get-applications');
    expect(data.map(({ id }: { id: string }) => id)).toEqual([first, second]);
    expect((await api.post('/api/v1/panel/create-application', { name: 'Another one' })).code).toBe('application_forbidden');
  });

  it('sees nothing once its applications are gone, and does not become one for all', async () => {
    const other = await signUp();
    const [gone, stays] = [await createApplication(other.session), await createApplication(other.session)];
    const { api } = await createKey(other, { applicationIds: [gone] });
    await other.session.delete('/api/v1/panel/delete-application', { applicationId: gone, code: '' });
    expect((await api.get('/api/v1/panel/get-applications')).data).toEqual([]);
    const settings = '/api/v1/panel/get-application-settings';
    expect((await api.get(settings, { applicationId: stays })).code).toBe('application_forbidden');
    expect((await api.get(settings, { applicationId: gone })).code).toBe('not_found');
  });
});
