import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { createApplication, createKey, signUp } from '../testing/caller.ts';
import { type FileRow, listNames, outcome, TABLE, upload } from '../testing/files.ts';

/** Decisions 7. Nothing here changes anything, so one application serves all of it. */
let api: Api;
let applicationId: string;
/** Names of 25 files, newest first. */
let names: string[];
beforeAll(async () => {
  const owner = await signUp();
  api = (await createKey(owner, { scopes: ['files:read', 'files:upload', 'applications:read', 'applications:create'] })).api;
  applicationId = await createApplication(owner.session);
  const uploaded = ['Setup.EXE', 'setup_1', 'a b', ...Array.from({ length: 22 }, (_, i) => `file-${i}`)];
  for (const name of uploaded) await upload(api, applicationId, name);
  names = uploaded.reverse();
});

const get = (query: Record<string, string>): Promise<Answer> => api.get(TABLE, { applicationId, ...query });
const namesOf = ({ data }: Answer) => (data as FileRow[]).map(({ displayName }) => displayName);
const search = (searchString: string, categories: readonly string[] = ['Name']) => JSON.stringify({ searchString, categories });

function expectMalformed(answer: Answer, what?: string): void {
  expect([answer.status, answer.code, answer.message], what).toEqual([
    400,
    'VALIDATION_ERROR',
    'Request does not match the schema',
  ]);
}

describe('pages', () => {
  it('hold ten files each, newest first, and none twice', async () => {
    const pages = await Promise.all(['1', '2', '3'].map((currentPage) => get({ currentPage })));
    expect(pages.map(namesOf)).toEqual([names.slice(0, 10), names.slice(10, 20), names.slice(20)]);
    for (const page of pages) expect([page.totalPages, page.message]).toEqual([3, 'Successfully fetched table']);
    const times = pages.flatMap(({ data }) => (data as FileRow[]).map(({ createdAt }) => createdAt));
    expect(times).toEqual([...times].sort().reverse());
  });

  it.each(['4', '100', '2147483648', '9007199254740993', '9223372036854775807', '9223372036854775808', '9'.repeat(400)])(
    'past the end are empty: %s',
    async (currentPage) => {
      expect(await get({ currentPage })).toMatchObject({ status: 200, data: [], totalPages: 3 });
    },
  );

  it('are counted from 1, which is the one that is meant where none is named', async () => {
    for (const query of [{}, { currentPage: '1' }, { currentPage: '01' }] as Array<Record<string, string>>) {
      expect(namesOf(await get(query))).toEqual(names.slice(0, 10));
    }
  });

  it.each([
    '0',
    '00',
    '-1',
    '+1',
    '1.0',
    '1.5',
    '1e1',
    '0x1',
    '',
    ' ',
    ' 1',
    '1 ',
    '1\n',
    'abc',
    '١',
    '１',
    'NaN',
    'Infinity',
    'null',
    '[1]',
    '{}',
    '1,2',
    '\0',
    "1' OR 1=1",
  ])('are whole numbers: %j is malformed', async (currentPage) => {
    expectMalformed(await get({ currentPage }));
  });

  it('are named once', async () => {
    expectMalformed(await api.get(TABLE, `applicationId=${applicationId}&currentPage=1&currentPage=1`));
    expectMalformed(
      await api.get(TABLE, `applicationId=${applicationId}&searchParams=${encodeURIComponent(search('a'))}&searchParams=`),
    );
  });

  it('of an application without files are none', async () => {
    const id = await createApplication(api);
    for (const currentPage of ['1', '2']) {
      expect(await get({ applicationId: id, currentPage })).toMatchObject({ status: 200, data: [], totalPages: 0 });
    }
  });
});

describe('a search', () => {
  it.each([
    ['setup', ['setup_1', 'Setup.EXE']],
    ['SETUP', ['setup_1', 'Setup.EXE']],
    ['.exe', ['Setup.EXE']],
    ['_', ['setup_1']],
    ['p_1', ['setup_1']],
    [' ', ['a b']],
    ['A B', ['a b']],
    ['file-21', ['file-21']],
  ])('finds %j anywhere in a name, in any case', async (text, expected) => {
    const answer = await get({ searchParams: search(text) });
    expect([namesOf(answer), answer.totalPages]).toEqual([expected, 1]);
  });

  it.each([
    '%',
    '%%',
    's%p',
    'file_1',
    '__',
    '\\',
    '\\_',
    'setup\\',
    'file-2%',
    '.*',
    '^f',
    '[a-z]',
    'é',
    'ſetup',
    '😀',
    '\0',
    'file-\u200b1',
    'x'.repeat(900),
    "' OR 1=1 --",
    '__proto__',
  ])('takes every character for itself: %j finds nothing', async (text) => {
    expect(await get({ searchParams: search(text) })).toMatchObject({ status: 200, data: [], totalPages: 0 });
  });

  it('has pages of its own', async () => {
    const matching = names.filter((name) => name.includes('file-1'));
    const [first, second, third] = await Promise.all(
      ['1', '2', '3'].map((currentPage) => get({ currentPage, searchParams: search('FILE-1') })),
    );
    expect([first, second, third].map((page) => namesOf(page as Answer))).toEqual([
      matching.slice(0, 10),
      matching.slice(10),
      [],
    ]);
    for (const page of [first, second, third]) expect(page?.totalPages).toBe(2);
  });

  it('without text or without a category filters nothing', async () => {
    for (const searchParams of [search(''), search('setup', []), search('', [])]) {
      const answer = await get({ searchParams });
      expect([namesOf(answer), answer.totalPages]).toEqual([names.slice(0, 10), 3]);
    }
  });

  it('may name its category more than once, in any spelling of JSON', async () => {
    for (const searchParams of [
      search('setup', ['Name', 'Name']),
      ' \n{"categories" : ["Name"],\t"searchString":"setup"} ',
      String.raw`{"searchString":"\u0073etup","categories":["\u004eame"]}`,
      String.raw`{"search\u0053tring":"setup","categories":["Name"]}`,
    ]) {
      expect(namesOf(await get({ searchParams })), searchParams).toEqual(['setup_1', 'Setup.EXE']);
    }
  });
});

/** JSON text of exactly so many characters. */
const ofLength = (length: number) => search('').padEnd(length, ' ');

const MALFORMED: Readonly<Record<string, string>> = {
  nothing: '',
  'white space': '  ',
  'plain text': 'setup',
  'broken JSON': '{"searchString":"a","categories":["Name"]',
  'single quotes': "{'searchString':'a','categories':['Name']}",
  'a comma too many': '{"searchString":"a","categories":["Name"],}',
  'two documents': `${search('a')}${search('a')}`,
  null: 'null',
  'a number': '1',
  text: '"a"',
  'an array': `[${search('a')}]`,
  'an empty object': '{}',
  'no categories': '{"searchString":"a"}',
  'no text': '{"categories":["Name"]}',
  'another property': '{"searchString":"a","categories":["Name"],"more":1}',
  'a property twice': '{"searchString":"a","searchString":"a","categories":["Name"]}',
  'a property twice, once escaped': String.raw`{"searchString":"a","search\u0053tring":"a","categories":["Name"]}`,
  'a prototype': '{"searchString":"a","categories":["Name"],"__proto__":{"a":1}}',
  'a prototype alone': '{"__proto__":{"searchString":"a","categories":["Name"]}}',
  'a constructor': '{"searchString":"a","categories":["Name"],"constructor":1}',
  'a number to search for': '{"searchString":1,"categories":["Name"]}',
  'null to search for': '{"searchString":null,"categories":["Name"]}',
  'an array to search for': '{"searchString":["a"],"categories":["Name"]}',
  'a category alone': '{"searchString":"a","categories":"Name"}',
  'an object of categories': '{"searchString":"a","categories":{"0":"Name"}}',
  'a category in small letters': search('a', ['name']),
  'an unknown category': search('a', ['Type']),
  'an unknown category beside a known one': search('a', ['Name', 'Type']),
  'an unknown category and no text': search('', ['Type']),
  'a number for a category': '{"searchString":"a","categories":[1]}',
  'nested categories': '{"searchString":"a","categories":[["Name"]]}',
  'half a surrogate': String.raw`{"searchString":"\ud800","categories":["Name"]}`,
  'deep nesting': `${'['.repeat(500)}${']'.repeat(500)}`,
  'a number out of range': '1e999',
  'one character too many': ofLength(1_025),
  'thousands of characters too many': ofLength(9_000),
};

describe('searchParams', () => {
  it.each(Object.entries(MALFORMED))('refuses %s', async (_what, searchParams) => {
    expectMalformed(await get({ searchParams }));
  });

  it.each(['%', '%7', '%zz', '%ff', '%ed%a0%80', '%7B%', '%00'])('refuses what is no text: %s', async (raw) => {
    expectMalformed(await api.get(TABLE, `applicationId=${applicationId}&searchParams=${raw}`));
  });

  it('takes 1,024 characters, however many bytes they are', async () => {
    expect(outcome(await get({ searchParams: ofLength(1_024) }))).toBe('200');
    const frame = search('').length;
    expect(outcome(await get({ searchParams: search('😀'.repeat(1_024 - frame)) }))).toBe('200');
    expectMalformed(await get({ searchParams: search('😀'.repeat(1_025 - frame)) }));
  });

  it('is looked at after the scope and before the application', async () => {
    const unknown = '01900000-0000-7000-8000-00000000dead';
    expectMalformed(await get({ applicationId: unknown, searchParams: '{' }));
    expectMalformed(await get({ applicationId: unknown, currentPage: '0' }));
    expect(outcome(await get({ applicationId: unknown, searchParams: search('a') }))).toBe('404 not_found');
  });
});

it('all of this left the files as they were', async () => {
  expect(await listNames(api, applicationId)).toEqual(names);
});
