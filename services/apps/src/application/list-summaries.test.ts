import { randomUUID } from 'node:crypto';
import { SummaryOrder } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { refusalOf } from '@latchkey/testkit/refusal';
import { beforeAll, expect, it } from 'vitest';
import { useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();
const accountId = randomUUID();
let ids: string[];

beforeAll(async () => {
  const names = ['Banana', 'apple 100%', 'Cherry'];
  ids = [];
  for (const name of names) ids.push((await apps.client.createApplication({ accountId, name })).applicationId);
  await apps.set({ accountId, applicationId: ids[0] as string }, 'status', 'paused');
  await apps.set({ accountId, applicationId: ids[2] as string }, 'version', '2.0');
});

const list = (request: object = {}) => apps.client.listApplicationSummaries({ accountId, page: 1, pageSize: 50, ...request });
const namesOf = async (request: object = {}) => (await list(request)).summaries.map(({ name }) => name);

it.each([
  ['name', { order: SummaryOrder.NAME }, ['apple 100%', 'Banana', 'Cherry']],
  ['name, descending', { descending: true }, ['Cherry', 'Banana', 'apple 100%']],
  ['status, then creation', { order: SummaryOrder.STATUS }, ['apple 100%', 'Cherry', 'Banana']],
  ['version, descending', { order: SummaryOrder.VERSION, descending: true }, ['Cherry', 'Banana', 'apple 100%']],
  ['last change', { order: SummaryOrder.UPDATED_AT, descending: true }, ['Cherry', 'Banana', 'apple 100%']],
])('sorts by %s', async (_what, request, expected) => {
  expect(await namesOf(request)).toEqual(expected);
});

it('sorts by the ranks of the request, and others as 0', async () => {
  const ranks = [{ applicationId: ids[1], rank: 5n }];
  expect(await namesOf({ order: SummaryOrder.RANK, descending: true, ranks })).toEqual(['apple 100%', 'Banana', 'Cherry']);
});

it.each([
  ['AN', ['Banana']],
  ['%', ['apple 100%']],
  ['_', []],
])('finds names with %j', async (search, expected) => {
  expect(await namesOf({ search })).toEqual(expected);
});

it('counts all pages, and a page past the end is empty', async () => {
  expect(await list({ page: 2, pageSize: 2 })).toMatchObject({ total: 3, summaries: [{ name: 'Cherry', version: '2.0' }] });
  expect(await list({ page: 2_000_000_000 })).toMatchObject({ total: 3, summaries: [] });
  expect(await list({ accountId: randomUUID() })).toMatchObject({ total: 0, summaries: [] });
  expect(await list({ filter: { applicationIds: [ids[0], 'x'] } })).toMatchObject({ total: 1, summaries: [{ name: 'Banana' }] });
  expect(await list({ filter: { applicationIds: [] } })).toMatchObject({ total: 0 });
});

it.each<[string, object]>([
  ['page 0', { page: 0 }],
  ['1,001 rows', { pageSize: 1_001 }],
  ['a search with NUL', { search: 'a\0' }],
  ['a rank without an id', { ranks: [{ applicationId: 'x', rank: 1n }] }],
])('rejects %s', async (_what, request) => {
  expect(await refusalOf(list(request))).toMatchObject({ reason: 'page_token_invalid' });
});
