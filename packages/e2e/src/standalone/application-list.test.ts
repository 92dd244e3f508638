import { hash } from 'node:crypto';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, inject, it, onTestFinished } from 'vitest';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { outcome, upload } from '../client/files.ts';
import { LiveClient, readSocketKey, setSetting } from '../client/live.ts';

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

it('get-usage counts by day what happened to an application, and its live clients', async () => {
  const { session, ...owner } = await signUp();
  const [{ api: key, id: keyId }, applicationId] = [await createKey({ session, ...owner }), await createApplication(session)];
  const repeated = { 'idempotency-key': 'a', 'content-digest': `sha-256=:${hash('sha256', 'content', 'base64')}:` };
  await upload(key, applicationId, 'a.txt', 'content', repeated);
  const { data: file } = await upload(key, applicationId, 'a.txt', 'content', repeated);
  await setSetting(key, applicationId, 'version', '2.0');
  const { data: download } = await key.post('/api/v1/panel/create-download-url', { fileId: file.id }, { applicationId });
  for (const range of ['bytes=0-2', 'bytes=3-6', undefined])
    await (await fetch(download.url, { headers: range ? { range } : {} })).text();
  const socketKey = await readSocketKey(session, applicationId);
  const sockets = [1, 2].map(() => new LiveClient(inject('latchkeyInstance').realtimeUrl, socketKey));
  onTestFinished(() => sockets.forEach(({ ws }) => void ws.terminate()));
  const read = (query: object = {}) => session.get('/api/v1/panel/get-usage', { applicationId, ...query });
  const sumsOf = (rows: Array<Record<string, number>>) =>
    rows.reduce(
      (sums, { date: _date, ...counts }) =>
        Object.fromEntries(Object.entries(counts).map(([name, by]) => [name, (sums[name] ?? 0) + by])),
      {},
    );
  await eventually(
    async () => {
      // The counts may belong to two days.
      const { data } = await read({ days: '2' });
      expect(sumsOf(data)).toEqual({ events: 1, downloads: 2, uploads: 1, clientsMax: 2 });
      const live = await session.get('/api/v1/panel/get-live-clients', { applicationId });
      expect(live.data).toEqual({ clients: 2 });
      const requests = await session.get(`/api/v1/panel/api-keys/${keyId}/requests`, { days: '2' });
      expect(sumsOf(requests.data)).toEqual({ requests: 4 });
    },
    { timeoutMs: 60_000, intervalMs: 500 },
  );
  const { data, message } = await read();
  expect([message, data.length, data.at(-1).date]).toEqual([
    'Successfully fetched usage',
    90,
    expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
  ]);
  for (const days of ['0', '91', '1.5', 'x', '']) expect(outcome(await read({ days }))).toBe('400 VALIDATION_ERROR');
});
