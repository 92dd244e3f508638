import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { createApplication, createKey, signUp } from '../testing/caller.ts';
import { type FileRow, outcome, TABLE, upload } from '../testing/files.ts';

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

  it('are given once, as whole numbers', async () => {
    const bad = '0|00|-1|+1|1.0|1.5|1e1|0x1|| | 1|1 |1\n|abc|١|１|NaN|Infinity|null'.split('|');
    for (const currentPage of [...bad, '[1]', '{}', '1,2', '\0', "1' OR 1=1"])
      expect(await get({ currentPage }), currentPage).toMatchObject(MALFORMED);
    for (const twice of ['currentPage=1&currentPage=1', `searchParams=${encodeURIComponent(search('a'))}&searchParams=`])
      expect(await api.get(TABLE, `applicationId=${applicationId}&${twice}`)).toMatchObject(MALFORMED);
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

  it('may be spelt in any way of JSON', async () => {
    const escaped = [
      String.raw`{"searchString":"\u0073etup","categories":["\u004eame"]}`,
      String.raw`{"search\u0053tring":"setup","categories":["Name"]}`,
    ];
    for (const searchParams of [
      search('setup', ['Name', 'Name']),
      ' \n{"categories" : ["Name"],\t"searchString":"setup"} ',
      ...escaped,
    ])
      expect(namesOf(await get({ searchParams })), searchParams).toEqual(['setup_1', 'Setup.EXE']);
  });
});

describe('searchParams', () => {
  const VALID = '"searchString":"a","categories":["Name"]';
  const ofLength = (length: number) => search('').padEnd(length, ' ');

  it.each([
    '',
    '  ',
    'setup',
    `{${VALID}`,
    "{'searchString':'a','categories':['Name']}",
    `{${VALID},}`,
    `{${VALID}}{${VALID}}`,
    'null',
    '1',
    '"a"',
    `[{${VALID}}]`,
    '{}',
    '{"searchString":"a"}',
    '{"categories":["Name"]}',
    `{${VALID},"more":1}`,
    `{"searchString":"a",${VALID}}`,
    String.raw`{${VALID},"search\u0053tring":"a"}`,
    `{${VALID},"__proto__":{"a":1}}`,
    `{"__proto__":{${VALID}}}`,
    `{${VALID},"constructor":1}`,
    ...['1', 'null', '["a"]'].map((text) => `{"searchString":${text},"categories":["Name"]}`),
    ...['"Name"', '{"0":"Name"}', '[1]', '[["Name"]]'].map((categories) => `{"searchString":"a","categories":${categories}}`),
    ...[search('a', ['name']), search('a', ['Type']), search('a', ['Name', 'Type']), search('', ['Type'])],
    String.raw`{"searchString":"\ud800","categories":["Name"]}`,
    `${'['.repeat(500)}${']'.repeat(500)}`,
    '1e999',
    ofLength(1_025),
    ofLength(9_000),
  ])('refuses %s', async (searchParams) => {
    expect(await get({ searchParams })).toMatchObject(MALFORMED);
  });

  it('refuses what is no UTF-8', async () => {
    for (const raw of ['%', '%7', '%zz', '%ff', '%ed%a0%80', '%7B%', '%00'])
      expect(await api.get(TABLE, `applicationId=${applicationId}&searchParams=${raw}`), raw).toMatchObject(MALFORMED);
  });

  it('takes 1,024 characters, however many bytes they are', async () => {
    expect(outcome(await get({ searchParams: ofLength(1_024) }))).toBe('200');
    const left = 1_024 - search('').length;
    expect(outcome(await get({ searchParams: search('😀'.repeat(left)) }))).toBe('200');
    expect(await get({ searchParams: search('😀'.repeat(left + 1)) })).toMatchObject(MALFORMED);
  });
});
