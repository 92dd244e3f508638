import { randomUUID } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { toConnectError } from '@latchkey/kit/errors/errors';
import { createErrors } from '@latchkey/kit/errors/read-proto-errors';
import { type FileError, FileErrorSchema, type FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { beforeEach, describe, expect, it } from 'vitest';
import { ACCOUNT, toKey, useTestGateway } from '../testing/test-gateway.ts';

const applicationId = randomUUID();
const REF = { accountId: ACCOUNT.id, applicationId };
const INVALID = { success: false, code: 'VALIDATION_ERROR', message: 'Request does not match the schema' };

/** Every call that the files service got, and what it returns next. */
let calls: Array<readonly [method: string, request: object]> = [];
let responses: Record<string, object | Error> = {};
beforeEach(() => {
  calls = [];
  responses = {};
});
const METHODS = ['checkFileName', 'getFilesMetadata', 'listFiles', 'renameFile', 'deleteFile'];
const files = Object.fromEntries(
  METHODS.map((method) => [
    method,
    async (request: object) => {
      calls.push([method, request]);
      const response = responses[method] ?? {};
      if (response instanceof Error) throw response;
      return response;
    },
  ]),
) as Partial<ServiceImpl<typeof FileService>>;

const gateway = useTestGateway({
  files,
  authentication: { authenticate: async () => toKey(['files:upload', 'files:read', 'files:delete']) },
});

async function send(name: string, { query = '', body }: { query?: string; body?: unknown } = {}) {
  const path = `/api/v1/panel/${name}?applicationId=${applicationId}${query && `&${query}`}`;
  const headers = { authorization: 'Bearer a' };
  const { envelope } = await gateway.send(body === undefined ? 'GET' : 'POST', path, {
    headers,
    ...(body !== undefined && { body }),
  });
  return envelope;
}

const WRONG_NAMES = [
  ...['', '.', 'a.', '.a', 'a  b', 'a. b', 'a/b', 'ä', 'abcdefghijklmnopq', '\u{1f511}', 'a\u00a0b', '\u200b'],
  ...['\0', '..', 'a .b', 'a\u200b.\u200b.b', '../a', 'ａ', 'e\u0301te\u0301', 'abcdefgh.abcdefgh', 'a'.repeat(5_000)],
];

describe('check-file-name', () => {
  it.each([
    ...['a', '7', '-', '--', 'A-z_0', 'a b.c d-e', '1.2.3', '__proto__', 'abcdefghijklmnop'].map((name) => [name, name]),
    ...['\t\r\n\u00a0\u3000abc\u2028\u2029\u205f', '\u200ba\u200cb\u200dc\u2060', '\ufeffabc', '\0a\x01\tb\r\n\x1b\x7f\x9fc'].map(
      (name) => [name, 'abc'],
    ),
    ...['\u202eabc\u202c\u2066\u2069\u200e', 'a\ufe0fb\u{e0041}c', ' \u200b \u200b abc \u200b '].map((name) => [name, 'abc']),
    ['\u212aelvin', 'Kelvin'],
    [' \ufeff\u200bab\u00adcdefghijklmnop\0\u2060\t ', 'abcdefghijklmnop'],
  ])('checks %j without invisible characters and white space around', async (fileName, checked) => {
    expect(await send('check-file-name', { body: { fileName } })).toEqual({ success: true, message: 'File name available' });
    expect(calls).toMatchObject([['checkFileName', { ...REF, fileName: checked }]]);
  });

  it.each([...WRONG_NAMES.map((fileName) => ({ fileName })), {}, { fileName: 1 }, { fileName: 'a', more: 1 }, [], 'a'])(
    'rejects %j before any service is called',
    async (body) => {
      expect(await send('check-file-name', { body })).toMatchObject(INVALID);
      expect(calls).toEqual([]);
    },
  );

  it('reports a taken name', async () => {
    const { file_name_taken } = createErrors<typeof FileError>(FileErrorSchema);
    responses = { checkFileName: toConnectError(file_name_taken()) };
    expect(await send('check-file-name', { body: { fileName: 'a' } })).toMatchObject({ code: 'file_name_taken' });
  });
});

it.each([
  [{ totalFiles: 12n, lastUploadedAt: timestampFromDate(new Date('2026-05-11T09:00:00.000Z')) }, 12, '2026-05-11T09:00:00.000Z'],
  [{ totalFiles: 0n }, 0, null],
])('get-files-metadata has the count and the newest upload: %#', async (getFilesMetadata, totalFiles, lastUploadedAt) => {
  responses = { getFilesMetadata };
  const message = 'Successfully fetched metadata';
  expect(await send('get-files-metadata')).toEqual({ success: true, message, data: { totalFiles, lastUploadedAt } });
  expect(calls).toMatchObject([['getFilesMetadata', REF]]);
});

describe('get-files-table', () => {
  const table = (query: Record<string, string>) => send('get-files-table', { query: new URLSearchParams(query).toString() });
  const search = (params: unknown) => table({ searchParams: typeof params === 'string' ? params : JSON.stringify(params) });

  it('has rows with the username of the account, and the number of pages', async () => {
    const file = {
      id: randomUUID(),
      displayName: 'a file',
      byteSize: 150n * 1024n * 1024n,
      checksum: Buffer.from('00ff'.repeat(16), 'hex'),
      contentType: 'image/png',
      presignedUrlsCount: 3n,
      lastPresignedUrlCreatedAt: timestampFromDate(new Date('2026-05-12T09:00:00.120Z')),
      createdAt: timestampFromDate(new Date('2026-05-11T09:00:00.000Z')),
    };
    responses = { listFiles: { files: [file, { ...file, lastPresignedUrlCreatedAt: undefined }], totalFiles: 21n } };
    const row = {
      id: file.id,
      displayName: 'a file',
      byteSize: 157_286_400,
      contentType: 'image/png',
      presignedUrlsCount: 3,
      lastPresignedUrlCreatedAt: '2026-05-12T09:00:00.120Z',
      createdAt: '2026-05-11T09:00:00.000Z',
      user: { username: 'ada' },
      checksum: '00ff'.repeat(16),
    };
    const data = [row, { ...row, lastPresignedUrlCreatedAt: null }];
    expect(await table({})).toEqual({ success: true, message: 'Successfully fetched table', data, totalPages: 3 });
    expect(calls).toMatchObject([['listFiles', { ...REF, page: 1n, pageSize: 10, nameContains: '' }]]);
    for (const [totalFiles, totalPages] of [
      [0, 0],
      [10, 1],
      [11, 2],
    ] as const) {
      responses = { listFiles: { files: [], totalFiles: BigInt(totalFiles) } };
      expect(await table({})).toMatchObject({ data: [], totalPages });
    }
  });

  const LARGEST = 2n ** 31n - 1n;
  it.each([
    ['007', 7n],
    [String(LARGEST + 1n), LARGEST],
    ['9'.repeat(5_000), LARGEST],
  ])('accepts a whole number as page: %#', async (currentPage, page) => {
    await table({ currentPage });
    expect(calls).toMatchObject([['listFiles', { page }]]);
  });

  it.each(['', '0', '-1', '+1', '1.0', '1e3', '0x1', ' 1', '1 ', '1n', 'NaN', 'Infinity', '١', '１', '[1]', '1,2', '\0', 'a'])(
    'rejects the page %j',
    async (currentPage) => {
      expect(await table({ currentPage })).toMatchObject(INVALID);
      expect(calls).toEqual([]);
    },
  );

  const NO_UTF8 = ['%', '%7', '%zz', '%ff', '%ed%a0%80', '%7B%', '%00'].map((raw) => `searchParams=${raw}`);
  it.each(['currentPage=1&currentPage=1', 'searchParams={}&searchParams={}', ...NO_UTF8])('rejects %s', async (query) => {
    expect(await send('get-files-table', { query })).toMatchObject(INVALID);
  });

  const ASTRAL = '\u{1f511}';
  const FITS = 1_024 - JSON.stringify({ searchString: '', categories: ['Name'] }).length;

  it.each([
    ['a text', { searchString: 'a_%\\"b', categories: ['Name'] }, 'a_%\\"b'],
    ['a category twice', '{ "categories": ["Name", "Name"], "searchString": "x" }', 'x'],
    ['no category', { searchString: 'x', categories: [] }, ''],
    ['1,024 characters', { searchString: ASTRAL.repeat(FITS), categories: ['Name'] }, ASTRAL.repeat(FITS)],
  ])('searches for the text of searchParams: %s', async (_, params, nameContains) => {
    await search(params);
    expect(calls).toMatchObject([['listFiles', { nameContains }]]);
  });

  it.each([
    ['nothing', ''],
    ['no JSON', '{searchString:"x"}'],
    ['null', 'null'],
    ['no categories', { searchString: 'x' }],
    ['no text', { categories: ['Name'] }],
    ['another property', { searchString: 'x', categories: ['Name'], more: 1 }],
    ['a number as text', { searchString: 1, categories: ['Name'] }],
    ['another category', { searchString: 'x', categories: ['Name', 'User'] }],
    ['a property given twice', '{"searchString":"x","searchString":"y","categories":["Name"]}'],
    ['a list', [{ searchString: 'x', categories: ['Name'] }]],
    ['a category outside of a list', { searchString: 'x', categories: 'Name' }],
    ['a category of another type', { searchString: 'x', categories: [['Name']] }],
    ['a category in lower case', { searchString: '', categories: ['name'] }],
    ['1,025 characters', { searchString: ASTRAL.repeat(FITS + 1), categories: ['Name'] }],
  ])('rejects searchParams of %s', async (_, params) => {
    expect(await search(params)).toMatchObject(INVALID);
    expect(calls).toEqual([]);
  });
});

describe('file-action', () => {
  const fileId = randomUUID();

  it.each([
    [{ action: 'delete_file' }, ['deleteFile', { ...REF, fileId }]],
    [{ action: 'delete_file', fileName: 'a/b' }, ['deleteFile', { ...REF, fileId }]],
    [{ action: 'change_file_name', fileName: ' a\u200b.b ' }, ['renameFile', { ...REF, fileId, fileName: 'a.b' }]],
  ])('succeeds with %j', async (body, call) => {
    const message = 'Action completed successfully.';
    expect(await send('file-action', { body: { ...body, fileId } })).toEqual({ success: true, message });
    expect(calls).toMatchObject([call]);
  });

  it.each([
    { action: 'change_file_name', fileId, fileName: 'a..b' },
    {},
    { action: 'delete_file' },
    { fileId },
    { action: 'DELETE_FILE', fileId },
    { action: 'delete_file', fileId: null },
    { action: 'delete_file', fileId, fileName: 1 },
    { action: 'delete_file', fileId, more: 1 },
    { action: ['delete_file'], fileId },
    [],
  ])('rejects %j', async (body) => {
    expect(await send('file-action', { body })).toMatchObject(INVALID);
    expect(calls).toEqual([]);
  });
});
