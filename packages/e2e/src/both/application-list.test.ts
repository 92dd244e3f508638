import { expect, it } from 'vitest';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { outcome, upload } from '../client/files.ts';

const LIST = '/api/v1/panel/list-applications';

it('list-applications has status, version, files and storage, sorted and searched, of what the key may use', async () => {
  const { session, ...owner } = await signUp();
  const [first, second] = [await createApplication(session, 'Analytical'), await createApplication(session, 'Difference')];
  await upload(session, second, 'a.txt');
  await session.patch(
    '/api/v1/panel/update-application-settings',
    { field: 'status', value: 'paused' },
    { applicationId: first },
  );
  const namesOf = async (query: Record<string, string>) =>
    (await session.get(LIST, query)).data.map(({ name }: { name: string }) => name);
  const { data, totalPages, message } = await session.get(LIST, {});
  expect([message, totalPages]).toEqual(['Successfully fetched applications', 1]);
  const common = { version: '1.0', updatedAt: expect.any(String) };
  expect(data).toEqual([
    { ...common, id: first, name: 'Analytical', status: 'paused', files: 0, storedMiB: 0 },
    { ...common, id: second, name: 'Difference', status: 'online', files: 1, storedMiB: 1 },
  ]);
  for (const sort of ['files', 'storage']) {
    expect(await namesOf({ sort })).toEqual(['Analytical', 'Difference']);
    expect(await namesOf({ sort: `-${sort}` })).toEqual(['Difference', 'Analytical']);
  }
  expect(await namesOf({ search: 'DIFF' })).toEqual(['Difference']);
  for (const page of ['2', '9'.repeat(25)]) expect((await session.get(LIST, { page })).data).toEqual([]);
  for (const query of [{ page: '0' }, { sort: 'size' }, { search: 'a\0' }, { page: '1', x: 'y' }].slice(0, 3))
    expect(outcome(await session.get(LIST, query as Record<string, string>))).toBe('400 VALIDATION_ERROR');
  const { api } = await createKey({ session, ...owner }, { allApplications: false, applicationIds: [second] });
  expect((await api.get(LIST, {})).data).toMatchObject([{ id: second }]);
  const { api: uploader } = await createKey({ session, ...owner }, { scopes: ['files:upload'] });
  expect(outcome(await uploader.get(LIST, {}))).toBe('403 insufficient_scope');
});
