import { expect, it } from 'vitest';
import { createKey, signUp } from '../client/caller.ts';
import { outcome } from '../client/files.ts';

const LIST = '/api/v1/panel/list-api-keys';

it('list-api-keys has the keys of the account a page at a time, searched and sorted', async () => {
  const owner = await signUp();
  const { session } = owner;
  const used = await createKey(owner, { name: 'Build server' });
  for (const name of ['Support desk', 'Second desk']) await createKey(owner, { name });
  await createKey(await signUp(), { name: 'Desk of another account' });
  await used.api.get('/api/v1/panel/get-applications', {});
  const namesOf = async (query: Record<string, string>) =>
    (await session.get(LIST, query)).data.map(({ name }: { name: string }) => name);
  const { data, totalPages, message } = await session.get(LIST, {});
  expect([message, totalPages]).toEqual(['Successfully fetched API keys.', 1]);
  const records = (await session.get('/api/v1/panel/api-keys', {})).data;
  expect(data.map(({ id }: { id: string }) => id)).toEqual([records[0].id, records[2].id, records[1].id]);
  expect(Object.keys(data[0])).toEqual(Object.keys(records[0]));
  expect(await namesOf({ sort: '-name' })).toEqual(['Support desk', 'Second desk', 'Build server']);
  expect(await namesOf({ sort: 'createdAt' })).toEqual(['Build server', 'Support desk', 'Second desk']);
  expect((await namesOf({ sort: '-lastUsedAt' }))[0]).toBe('Build server');
  expect(await namesOf({ search: 'DESK', sort: '-createdAt' })).toEqual(['Second desk', 'Support desk']);
  for (const page of ['2', '9'.repeat(25)]) expect(await namesOf({ page })).toEqual([]);
  for (const query of [{ page: '0' }, { sort: 'scopes' }, { search: 'a\0' }])
    expect(outcome(await session.get(LIST, query as Record<string, string>))).toBe('400 VALIDATION_ERROR');
  expect(outcome(await used.api.get(LIST, {}))).toBe('403 session_required');
});
