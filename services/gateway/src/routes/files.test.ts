import { randomUUID } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { defineErrors, toConnectError } from '@latchkey/kit/errors';
import type { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestGateway, type TestGateway } from '../testing/test-gateway.ts';

const ACCOUNT_ID = randomUUID();
const OWNED = randomUUID();
const RESTRICTED = randomUUID();
const KEYS: Record<string, object> = {
  open: { scopes: ['files:upload', 'files:read', 'files:delete'], allApplications: true },
  restricted: { scopes: ['files:upload', 'files:read', 'files:delete'], applicationIds: [OWNED] },
};

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

/** Every call that the files service got, and what it answers next. */
let calls: Array<readonly [method: string, request: object]> = [];
let answers: Record<string, object | Error> = {};
const record = (method: string) => async (request: object) => {
  calls.push([method, request]);
  const answer = answers[method] ?? {};
  if (answer instanceof Error) throw answer;
  return answer;
};
const METHODS = ['checkFileName', 'getFilesMetadata', 'listFiles', 'renameFile', 'deleteFile'];
const files = Object.fromEntries(METHODS.map((name) => [name, record(name)])) as Partial<ServiceImpl<typeof FileService>>;

let gateway: TestGateway;
beforeAll(async () => {
  const { url: redisUrl } = await testRedis();
  const env = { RATE_LIMIT_IP_PER_MINUTE: '100000', RATE_LIMIT_PRINCIPAL_PER_MINUTE: '100000' };
  gateway = await startTestGateway({
    redisUrl,
    env,
    files,
    authentication: {
      authenticate: async ({ credential }) => {
        const key = KEYS[String(credential.value)] ?? {};
        return {
          principal: { kind: PrincipalKind.API_KEY, accountId: ACCOUNT_ID, username: 'ada', credentialId: randomUUID(), ...key },
        };
      },
    },
    applications: {
      findOwnedApplications: async ({ applicationIds }) => ({
        applicationIds: applicationIds.filter((id) => id === OWNED || id === RESTRICTED),
      }),
    },
  });
});
afterAll(() => gateway.service.stop());
beforeEach(() => {
  calls = [];
  answers = {};
});

interface Call {
  readonly query?: Record<string, string>;
  readonly body?: unknown;
  readonly key?: string;
}

async function request(name: string, { query = {}, body, key = 'open' }: Call = {}) {
  const url = new URL(`${gateway.baseUrl}/api/v1/panel/${name}`);
  url.search = new URLSearchParams({ applicationId: OWNED, ...query }).toString();
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });
  return { status: response.status, ...((await response.json()) as object) };
}

const REF = { accountId: ACCOUNT_ID, applicationId: OWNED };
const INVALID = { status: 400, code: 'VALIDATION_ERROR', message: 'Request does not match the schema' };
const NAMES = ['a', '-', '_', 'A-z_0', 'a b', 'a.b', 'a b.c', 'abcdefghijklmnop'];
const NO_NAMES = [
  '',
  ' ',
  '.',
  'a.',
  '.a',
  'a  b',
  'a..b',
  'a. b',
  'a/b',
  'ä',
  'abcdefghijklmnopq',
  '\u{1f511}',
  'a\u00a0b',
  '\u200b',
];

describe('check-file-name', () => {
  it.each(NAMES)('asks for %j', async (fileName) => {
    expect(await request('check-file-name', { body: { fileName } })).toEqual({
      status: 200,
      success: true,
      message: 'File name available',
    });
    expect(calls).toMatchObject([['checkFileName', { ...REF, fileName }]]);
  });

  it('asks for what is left without invisible characters and white space around', async () => {
    await request('check-file-name', { body: { fileName: ' \ufeff\u200bab\u00adcdefghijklmnop\0\u2060\t ' } });
    expect(calls).toMatchObject([['checkFileName', { fileName: 'abcdefghijklmnop' }]]);
  });

  it.each([
    ...NO_NAMES.map((fileName) => ({ fileName })),
    {},
    { fileName: 1 },
    { fileName: null },
    { fileName: 'a', more: 1 },
    [],
    'a',
  ])('refuses %j before any service is asked', async (body) => {
    expect(await request('check-file-name', { body })).toMatchObject(INVALID);
    expect(calls).toEqual([]);
  });

  it('says that a name is taken', async () => {
    const { file_name_taken } = defineErrors({
      file_name_taken: { kind: 'conflict', code: 'file_name_taken', message: 'Taken' },
    });
    answers = { checkFileName: toConnectError(file_name_taken()) };
    expect(await request('check-file-name', { body: { fileName: 'a' } })).toMatchObject({ status: 409, code: 'file_name_taken' });
  });
});

describe('get-files-metadata', () => {
  const message = 'Successfully fetched metadata';

  it('has the count and the time of the newest upload', async () => {
    answers = { getFilesMetadata: { totalFiles: 12n, lastUploadedAt: file.createdAt } };
    const data = { totalFiles: 12, lastUploadedAt: '2026-05-11T09:00:00.000Z' };
    expect(await request('get-files-metadata')).toEqual({ status: 200, success: true, message, data });
    expect(calls).toMatchObject([['getFilesMetadata', REF]]);
  });

  it('has null for an application without files', async () => {
    answers = { getFilesMetadata: { totalFiles: 0n } };
    expect(await request('get-files-metadata')).toMatchObject({ data: { totalFiles: 0, lastUploadedAt: null } });
  });
});

describe('get-files-table', () => {
  const table = (query: Record<string, string>) => request('get-files-table', { query });
  const search = (params: unknown) => table({ searchParams: typeof params === 'string' ? params : JSON.stringify(params) });

  it('has rows with the username of the account, and the number of pages beside them', async () => {
    answers = { listFiles: { files: [file, { ...file, lastPresignedUrlCreatedAt: undefined }], totalFiles: 21n } };
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
    expect(await table({})).toEqual({
      status: 200,
      success: true,
      message: 'Successfully fetched table',
      data: [row, { ...row, lastPresignedUrlCreatedAt: null }],
      totalPages: 3,
    });
    expect(calls).toMatchObject([['listFiles', { ...REF, page: 1n, pageSize: 10, nameContains: '' }]]);
  });

  it.each([
    [0, 0],
    [1, 1],
    [10, 1],
    [11, 2],
  ])('of %i files has %i pages', async (totalFiles, totalPages) => {
    answers = { listFiles: { files: [], totalFiles: BigInt(totalFiles) } };
    expect(await table({})).toMatchObject({ data: [], totalPages });
  });

  const ASTRAL = '\u{1f511}';
  const FITS = 1_024 - JSON.stringify({ searchString: '', categories: ['Name'] }).length;
  const HUGE = 2n ** 63n - 1n;
  it.each([
    ['1', 1n],
    ['007', 7n],
    ['12', 12n],
    ['9007199254740993', 9_007_199_254_740_993n],
    [String(HUGE), HUGE],
    [String(HUGE + 1n), HUGE],
    ['9'.repeat(19), HUGE],
    ['9'.repeat(5_000), HUGE],
    ['0'.repeat(50).concat('2'), 2n],
  ])('takes a whole number as page: %#', async (currentPage, page) => {
    expect(await table({ currentPage })).toMatchObject({ status: 200 });
    expect(calls).toMatchObject([['listFiles', { page }]]);
  });

  it.each(['', '0', '00', '-1', '+1', '1.0', '1e3', '0x1', ' 1', '1 ', '1n', 'NaN', 'Infinity', '١', 'a', '1,2'])(
    'refuses the page %j',
    async (currentPage) => {
      expect(await table({ currentPage })).toMatchObject(INVALID);
      expect(calls).toEqual([]);
    },
  );

  it('refuses a page, and a search, given twice', async () => {
    for (const twice of ['currentPage=1&currentPage=1', 'searchParams={}&searchParams={}']) {
      const url = `${gateway.baseUrl}/api/v1/panel/get-files-table?applicationId=${OWNED}&${twice}`;
      const response = await fetch(url, { headers: { authorization: 'Bearer open' } });
      expect({ status: response.status, ...((await response.json()) as object) }).toMatchObject(INVALID);
    }
  });

  it.each([
    ['a text', { searchString: 'a_%\\"b', categories: ['Name'] }, 'a_%\\"b'],
    ['properties in any order', '{ "categories": ["Name"], "searchString": "x" }', 'x'],
    ['a category twice', { searchString: 'x', categories: ['Name', 'Name'] }, 'x'],
    ['an empty text', { searchString: '', categories: ['Name'] }, ''],
    ['no category', { searchString: 'x', categories: [] }, ''],
    ['1,024 characters', { searchString: ASTRAL.repeat(FITS), categories: ['Name'] }, ASTRAL.repeat(FITS)],
  ])('searches for what searchParams have: %s', async (_, params, nameContains) => {
    expect(await search(params)).toMatchObject({ status: 200 });
    expect(calls).toMatchObject([['listFiles', { nameContains }]]);
  });

  it.each([
    ['nothing', ''],
    ['no JSON', '{searchString:"x"}'],
    ['JSON that ends early', '{"searchString":"x","categories":["Name"]'],
    ['text', '"x"'],
    ['null', 'null'],
    ['an array', '[]'],
    ['no property', {}],
    ['no categories', { searchString: 'x' }],
    ['no text', { categories: ['Name'] }],
    ['another property', { searchString: 'x', categories: ['Name'], more: 1 }],
    ['a number as text', { searchString: 1, categories: ['Name'] }],
    ['a text as categories', { searchString: 'x', categories: 'Name' }],
    ['another category', { searchString: 'x', categories: ['Name', 'User'] }],
    ['a category in another case', { searchString: 'x', categories: ['name'] }],
    ['null as a category', { searchString: 'x', categories: [null] }],
    ['a property given twice', '{"searchString":"x","searchString":"y","categories":["Name"]}'],
    ['a property named __proto__', '{"searchString":"x","categories":["Name"],"__proto__":{}}'],
    ['half a surrogate pair', '{"searchString":"\\ud800","categories":["Name"]}'],
    ['nesting without end', `{"searchString":"x","categories":${'['.repeat(400)}${']'.repeat(400)}}`],
    ['1,025 characters', { searchString: ASTRAL.repeat(FITS + 1), categories: ['Name'] }],
  ])('refuses searchParams of %s', async (_, params) => {
    expect(await search(params)).toMatchObject(INVALID);
    expect(calls).toEqual([]);
  });
});

describe('file-action', () => {
  const act = (body: unknown, key?: string) => request('file-action', { body, ...(key && { key }) });
  const DONE = { status: 200, success: true, message: 'Action completed successfully.' };
  const fileId = randomUUID();

  it('deletes, whatever text stands for a name beside it', async () => {
    for (const more of [{}, { fileName: '' }, { fileName: 'a/b' }]) {
      calls = [];
      expect(await act({ action: 'delete_file', fileId, ...more })).toEqual(DONE);
      expect(calls).toMatchObject([['deleteFile', { ...REF, fileId }]]);
    }
  });

  it('renames to what is left of the name', async () => {
    expect(await act({ action: 'change_file_name', fileId, fileName: ' a\u200b.b ' })).toEqual(DONE);
    expect(calls).toMatchObject([['renameFile', { ...REF, fileId, fileName: 'a.b' }]]);
  });

  it.each(NO_NAMES)('refuses to rename to %j', async (fileName) => {
    expect(await act({ action: 'change_file_name', fileId, fileName })).toMatchObject(INVALID);
    expect(calls).toEqual([]);
  });

  it('refuses to rename to nothing once the application is found, and says so', async () => {
    const body = { action: 'change_file_name', fileId };
    expect(await act(body)).toMatchObject({ status: 400, code: 'bad_request' });
    const elsewhere = { body, query: { applicationId: randomUUID() } };
    expect(await request('file-action', elsewhere)).toMatchObject({ status: 404, code: 'not_found' });
    const forbidden = { body, query: { applicationId: RESTRICTED }, key: 'restricted' };
    expect(await request('file-action', forbidden)).toMatchObject({ status: 403, code: 'application_forbidden' });
    expect(calls).toEqual([]);
  });

  it.each([
    {},
    { action: 'delete_file' },
    { fileId },
    { action: 'delete', fileId },
    { action: 'DELETE_FILE', fileId },
    { action: 'delete_file', fileId: 1 },
    { action: 'delete_file', fileId: null },
    { action: 'delete_file', fileId, fileName: 1 },
    { action: 'delete_file', fileId, more: 1 },
    { action: 'change_file_name', fileId, fileName: null },
    { action: 'change_file_name', fileId, fileName: 'a', more: 1 },
    { action: ['delete_file'], fileId },
    [],
  ])('refuses %j', async (body) => {
    expect(await act(body)).toMatchObject(INVALID);
    expect(calls).toEqual([]);
  });
});

describe('every file route', () => {
  it.each([
    ['check-file-name', { body: { fileName: 'a' } }],
    ['get-files-metadata', {}],
    ['get-files-table', {}],
    ['file-action', { body: { action: 'delete_file', fileId: randomUUID() } }],
  ])('tells a key that is restricted away 403 only of the account’s applications: %s', async (name, call) => {
    const as = (applicationId: string) => request(name, { ...call, key: 'restricted', query: { applicationId } });
    expect(await as(RESTRICTED)).toMatchObject({ status: 403, code: 'application_forbidden' });
    expect(await as(randomUUID())).toMatchObject({ status: 404, code: 'not_found' });
    expect(await as('no id')).toMatchObject({ status: 404, code: 'not_found' });
    expect(calls).toEqual([]);
    expect(await as(OWNED.toUpperCase())).not.toMatchObject({ status: 404 });
  });

  it('is in the OpenAPI document', async () => {
    const response = await fetch(`${gateway.baseUrl}/openapi.json`);
    const document = (await response.json()) as { paths: Record<string, Record<string, { responses: Record<string, unknown> }>> };
    for (const name of ['check-file-name', 'get-files-metadata', 'get-files-table', 'file-action']) {
      expect(document.paths).toHaveProperty(`/api/v1/panel/${name}`);
    }
    const table = JSON.stringify(document.paths['/api/v1/panel/get-files-table']?.get?.responses['200']);
    expect(table).toContain('totalPages');
  });
});
