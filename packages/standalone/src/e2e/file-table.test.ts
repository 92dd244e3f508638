import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { createApplication, createKey, signUp } from '../testing/caller.ts';
import { type FileRow, TABLE, upload } from '../testing/files.ts';

/** Decisions 7. */
let api: Api;
let applicationId: string;
/** Names of 25 files, newest first. */
let names: string[];
beforeAll(async () => {
  const owner = await signUp();
  api = (await createKey(owner, { scopes: ['files:read', 'files:upload', 'applications:create'] })).api;
  applicationId = await createApplication(owner.session);
  const uploaded = ['Setup.EXE', 'setup_1', 'a b', ...Array.from({ length: 22 }, (_, i) => `file-${i}`)];
  for (const name of uploaded) await upload(api, applicationId, name);
  names = uploaded.reverse();
});

const get = (query: Record<string, string>): Promise<Answer> => api.get(TABLE, { applicationId, ...query });
const namesOf = ({ data }: Answer) => (data as FileRow[]).map(({ displayName }) => displayName);
const search = (searchString: string, categories: readonly string[] = ['Name']) => JSON.stringify({ searchString, categories });
const MALFORMED = { status: 400, code: 'VALIDATION_ERROR', message: 'Request does not match the schema' };
const EMPTY = { status: 200, data: [] };

describe('pages', () => {
  it('have ten files each, newest first, and count from 1', async () => {
    const pages = await Promise.all(['1', '2', '3'].map((currentPage) => get({ currentPage })));
    expect(pages.map(namesOf)).toEqual([names.slice(0, 10), names.slice(10, 20), names.slice(20)]);
    for (const page of pages) expect([page.totalPages, page.message]).toEqual([3, 'Successfully fetched table']);
    const times = pages.flatMap(({ data }) => (data as FileRow[]).map(({ createdAt }) => createdAt));
    expect(times).toEqual([...times].sort().reverse());
    for (const query of [{}, { currentPage: '01' }] as Array<Record<string, string>>)
      expect(namesOf(await get(query))).toEqual(names.slice(0, 10));
  });

  it('beyond the end are empty', async () => {
    const far = ['4', '100', '2147483648', '9007199254740993', '9223372036854775807', '9223372036854775808', '9'.repeat(400)];
    for (const currentPage of far) expect(await get({ currentPage }), currentPage).toMatchObject({ ...EMPTY, totalPages: 3 });
    const id = await createApplication(api);
    for (const currentPage of ['1', '2'])
      expect(await get({ applicationId: id, currentPage })).toMatchObject({ ...EMPTY, totalPages: 0 });
  });
});

describe('a search', () => {
  it.each([
    ...['setup', 'SETUP'].map((text) => [text, ['setup_1', 'Setup.EXE']] as const),
    ...['_', 'p_1'].map((text) => [text, ['setup_1']] as const),
    ...[' ', 'A B'].map((text) => [text, ['a b']] as const),
    ...[['.exe', ['Setup.EXE']] as const, ['file-21', ['file-21']] as const],
  ])('finds %j anywhere in a name, in any case', async (text, expected) => {
    const answer = await get({ searchParams: search(text) });
    expect([namesOf(answer), answer.totalPages]).toEqual([expected, 1]);
  });

  it('takes every character literally', async () => {
    const texts = '%|%%|s%p|file_1|__|\\|\\_|setup\\|file-2%|.*|^f|[a-z]|é|ſetup|😀|\0'.split('|');
    for (const text of [...texts, 'file-\u200b1', 'x'.repeat(900), "' OR 1=1 --", '__proto__'])
      expect(await get({ searchParams: search(text) }), text).toMatchObject({ ...EMPTY, totalPages: 0 });
  });

  it('has its own pages', async () => {
    const matching = names.filter((name) => name.includes('file-1'));
    const pages = await Promise.all(['1', '2', '3'].map((currentPage) => get({ currentPage, searchParams: search('FILE-1') })));
    expect(pages.map(namesOf)).toEqual([matching.slice(0, 10), matching.slice(10), []]);
    for (const page of pages) expect(page.totalPages).toBe(2);
  });

  it('without text or without a category filters nothing', async () => {
    for (const searchParams of [search(''), search('setup', []), search('', [])]) {
      const answer = await get({ searchParams });
      expect([namesOf(answer), answer.totalPages]).toEqual([names.slice(0, 10), 3]);
    }
  });
});

it('a page and searchParams are refused where they are malformed, or no UTF-8', async () => {
  const malformed = ['currentPage=0', 'searchParams=setup', 'currentPage=1&currentPage=1'];
  for (const raw of ['%', '%7', '%zz', '%ff', '%ed%a0%80', '%7B%', '%00']) malformed.push(`searchParams=${raw}`);
  for (const query of malformed)
    expect(await api.get(TABLE, `applicationId=${applicationId}&${query}`), query).toMatchObject(MALFORMED);
});
