import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { outcome } from '../client/files.ts';

const PATH = '/api/v1/panel/api-keys';
const LIST = '/api/v1/panel/list-api-keys';

const DATES = [
  '2001-01-01T00:00:00.000Z',
  '2999-01-01',
  '2999-01-01T00:00:00',
  '2999-02-30T00:00:00Z',
  '9999-12-31T23:59:59-12:00',
];

it('a key has an expiry in any time zone, or none, and no other value', async () => {
  const { session } = await signUp();
  const create = (expiresAt: unknown) =>
    session.post(PATH, { name: 'Some key', scopes: ['applications:read'], allApplications: true, expiresAt });
  expect((await create('2999-01-01T02:30:00+02:30')).data.expiresAt).toBe('2999-01-01T00:00:00.000Z');
  expect((await create(null)).data.expiresAt).toBeNull();
  for (const expiresAt of [...DATES, 32_503_680_000_000, 'tomorrow', ''])
    expect(outcome(await create(expiresAt)), String(expiresAt)).toBe('400 VALIDATION_ERROR');
});

it('list-api-keys has the keys of the account a page at a time, searched and sorted, with their last use', async () => {
  const owner = await signUp();
  const { session } = owner;
  const before = new Date().toISOString();
  const used = await createKey(owner, { name: 'Build server' });
  for (const name of ['Support desk', 'Second desk']) await createKey(owner, { name });
  await createKey(await signUp(), { name: 'Desk of another account' });
  await used.api.get('/api/v1/panel/get-applications', {});
  const namesOf = async (query: Record<string, string>) =>
    (await session.get(LIST, query)).data.map(({ name }: { name: string }) => name);
  const { data, totalPages, message } = await session.get(LIST, {});
  expect([message, totalPages]).toEqual(['Successfully fetched API keys.', 1]);
  const records = (await session.get(PATH, {})).data;
  expect(data).toEqual([records[0], records[2], records[1]]);
  expect(data[0]).toMatchObject({ lastUsedIp: '127.0.0.1', revokedAt: null });
  expect(data[0].lastUsedAt >= before).toBe(true);
  expect(await namesOf({ sort: '-name' })).toEqual(['Support desk', 'Second desk', 'Build server']);
  expect(await namesOf({ sort: 'createdAt' })).toEqual(['Build server', 'Support desk', 'Second desk']);
  expect((await namesOf({ sort: '-lastUsedAt' }))[0]).toBe('Build server');
  expect(await namesOf({ search: 'DESK', sort: '-createdAt' })).toEqual(['Second desk', 'Support desk']);
  for (const page of ['2', '9'.repeat(25)]) expect(await namesOf({ page })).toEqual([]);
  for (const query of [{ page: '0' }, { sort: 'scopes' }, { search: 'a\0' }])
    expect(outcome(await session.get(LIST, query as Record<string, string>))).toBe('400 VALIDATION_ERROR');
});

it('a restricted key sees only its applications, creates none, and stays restricted when one is deleted', async () => {
  const owner = await signUp();
  const { session } = owner;
  const [first, stays] = [await createApplication(session), await createApplication(session)];
  const { api, id } = await createKey(owner, { applicationIds: [first] });
  const reach = async (applicationId: string) =>
    outcome(await api.get('/api/v1/panel/get-application-settings', { applicationId }));
  const listed = async () => (await api.get('/api/v1/panel/get-applications')).data.map((one: { id: string }) => one.id);
  expect(await listed()).toEqual([first]);
  expect(outcome(await api.post('/api/v1/panel/create-application', { name: 'Another one' }))).toBe('403 application_forbidden');
  await session.delete('/api/v1/panel/delete-application', { applicationId: first, code: '' });
  expect(await listed()).toEqual([]);
  // The restriction itself is removed by a queue's job.
  const record = async () => (await session.get(`${PATH}/${id}`)).data;
  await eventually(async () => expect(await record()).toMatchObject({ allApplications: false, applicationIds: [] }), {
    timeoutMs: 15_000,
  });
  expect([await reach(stays), await reach(first)]).toEqual(['403 application_forbidden', '404 not_found']);
});
