import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, SendOptions } from '../client/api.ts';
import { createApplication, createKey, type Owner, sharedApi, signUp } from '../client/caller.ts';
import { ACTION, CHECK_NAME, TABLE, UPLOAD } from '../client/files.ts';
import { sendRaw } from '../client/raw-request.ts';
import { KEY_ROUTES, nameOf, type RouteCase, SESSION_ROUTES } from '../client/routes.ts';

const KEYS = '/api/v1/panel/api-keys';
const CREATE = '/api/v1/panel/create-application';
const LEVELS = '/api/v1/panel/create-application-license-levels';
const SETTINGS = '/api/v1/panel/update-application-settings';
const AUDIT_LOG = '/api/v1/panel/audit-log';
const SIGN_UP = '/api/v1/auth/sign-up';

let owner: Owner;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
});

const detailsOf = ({ text }: Answer) =>
  (JSON.parse(text) as { details: Array<{ path: string; message: string }> }).details.map(
    ({ path, message }) => `${path} ${message}`,
  );

/** A request and its details. */
type Case = readonly [target: string, options: SendOptions, details: readonly string[]];
const A = 'applicationId=a';
const levels = (...all: string[]) => ({ query: A, body: { levels: all } });
const FIELDS =
  'applicationLicenseRequiresClientId, applicationUserRequiresClientId, applicationUserRequiresLicense, version or status';
const FILE_NAME_RULE =
  'must be 1 to 16 characters: ASCII letters, digits, underscores and dashes, with single spaces or dots between them';

const CASES: readonly Case[] = [
  [`POST ${CREATE}`, {}, ['body must be a JSON object']],
  [`POST ${CREATE}`, { body: { name: 'short' } }, ['body.name must be 6 to 32 characters']],
  [`POST ${CREATE}`, { body: { name: 'long enough', more: 1 } }, ['body has an unknown property; known are name']],
  [`POST ${CREATE}`, { body: '{' }, ['body must be JSON in UTF-8']],
  [`POST ${CREATE}`, { body: '{"name":"a","name":"b"}' }, ['body must not have a property twice']],
  [`POST ${CREATE}`, { body: { name: 'a'.repeat(70_000) } }, ['body must be at most 64 KiB']],
  [`POST ${CREATE}`, { body: 'x', headers: { 'content-type': 'text/plain' } }, ['header.content-type must be application/json']],
  [
    `POST ${CREATE}`,
    { body: '{}', headers: { 'content-encoding': 'gzip' } },
    ['header.content-encoding must be identity or absent'],
  ],
  [`GET ${CREATE}`, {}, ['request must use the method POST']],
  [`POST ${LEVELS}`, levels(), ['body.levels must not be empty']],
  [`POST ${LEVELS}`, levels('a', 'a'), ['body.levels must not have a level twice']],
  [
    `POST ${LEVELS}`,
    levels(...Array(50).fill('')),
    [...[0, 1, 2].map((i) => `body.levels.${i} must be 1 to 16 characters`), 'body.levels must not have a level twice'],
  ],
  [
    `GET ${TABLE}`,
    { query: `${A}&${A}&currentPage=0` },
    ['query.applicationId must be given once', 'query.currentPage must be a whole number from 1'],
  ],
  [
    `GET ${TABLE}`,
    { query: `${A}&searchParams={}` },
    ['query.searchParams must be JSON of up to 1,024 characters: {"searchString": string, "categories": ["Name"]}'],
  ],
  [`POST ${CHECK_NAME}`, { query: A, body: { fileName: 'a'.repeat(17) } }, [`body.fileName ${FILE_NAME_RULE}`]],
  [`POST ${ACTION}`, { query: A, body: { action: 'x', fileId: 'a' } }, ['body.action must be delete_file or change_file_name']],
  [
    `POST ${UPLOAD}`,
    { query: `${A}&fileName=${'a'.repeat(17)}`, body: new Uint8Array(1), headers: { 'content-type': '' } },
    ['header.content-type must be application/octet-stream'],
  ],
  [
    `PATCH ${SETTINGS}`,
    { query: A, body: { field: 'x', value: null } },
    [`body.field must be ${FIELDS}`, 'body.value must be a boolean or a string'],
  ],
  [`GET ${AUDIT_LOG}`, { query: 'limit=101' }, ['query.limit must be a whole number from 1 to 100']],
  [`GET ${AUDIT_LOG}`, { query: 'cursor=x' }, ['query.cursor must be the nextCursor of a page']],
  [
    `POST ${SIGN_UP}`,
    { body: { username: 'a b', email: 'unknown', password: 'short' } },
    [
      'body.username must be 3 to 32 ASCII letters, digits, underscores and dashes',
      'body.email must be an email address',
      'body.password must be 10 to 128 characters without NUL',
    ],
  ],
  [`POST ${KEYS}/x/revoke`, { body: { more: 1 } }, ['body must be absent or empty']],
];

describe('details name the input and the rule', () => {
  it.each(CASES)('%s %j', async (target, options, expected) => {
    const [method = '', path = ''] = target.split(' ');
    expect(detailsOf(await owner.session.send(method, path, options))).toEqual(expected);
  });

  it('also where a service rejects what the schema let through', async () => {
    const { session } = owner;
    const key = await createKey(owner);
    const set = (field: string, value: unknown) => session.patch(SETTINGS, { field, value }, { applicationId });
    const change = (body: object) => session.patch(`${KEYS}/${key.id}`, body);
    const rename = session.post(ACTION, { action: 'change_file_name', fileId: 'a' }, { applicationId });
    const refused = [
      await set('status', 'asleep'),
      await set('applicationUserRequiresLicense', 'true'),
      await rename,
      await change({ expiresAt: '9999-12-31T23:59:59-12:00' }),
    ];
    await session.post(`${KEYS}/${key.id}/revoke`);
    refused.push(
      await change({ name: 'Another' }),
      await session.post('/api/v1/auth/two-factor/disable', { code: 'x', password: 'x' }),
    );
    await session.post('/api/v1/auth/two-factor/set-up');
    refused.push(await session.post('/api/v1/auth/two-factor/enable', { code: 'x' }));
    expect(refused.flatMap(detailsOf)).toEqual([
      'body.value must be online or paused for this field',
      'body.value must be a boolean for this field',
      'body.fileName is required',
      'body.expiresAt must be in the future and before the year 10000',
      'params.id A revoked API key cannot be changed',
      'request Two-factor authentication is not on',
      'body.code The code is wrong, or was used before',
    ]);
  });
});

/** Breaks every rule for ids, codes, keys and file names. */
const MARKER = 'zq"Marker<%7>qz, twice 2718281828';
const MARKED = /zq.?.?marker|2718281828/i;
const FORMS: readonly unknown[] = [MARKER.repeat(60), [[MARKER]], { [MARKER]: MARKER }, 2_718_281_828];
const HEADERS = ['content-type', 'content-digest', 'content-encoding', 'x-csrf-token', 'origin'];

const route = (method: RouteCase['method'], path: string, request: RouteCase['request']) => ({ method, path, request });
const ROUTES = [
  ...[...KEY_ROUTES, ...SESSION_ROUTES].filter(({ path }) => !path.includes('/sign-out')),
  route('POST', SIGN_UP, () => ({ body: { username: 'ada', email: 'a@b.example', password: 'too short' } })),
  route('POST', '/api/v1/auth/sign-in', () => ({
    body: { email: 'unknown@b.example', password: 'a long passphrase', code: '1' },
  })),
  route('POST', '/api/v1/auth/oidc/complete', () => ({ body: { code: '123456' } })),
  route('GET', '/api/v1/auth/oidc/start', () => ({ query: { issuer: 'nowhere' } })),
  route('GET', '/api/v1/auth/oidc/callback', () => ({ query: { code: 'a', state: 'b' } })),
  route('GET', AUDIT_LOG, () => ({ query: { limit: '1', cursor: 'a', action: 'b' } })),
  route('GET', TABLE, (id) => ({ query: { applicationId: id, searchParams: '{"searchString":"","categories":[]}' } })),
  route('POST', ACTION, (id) => ({
    query: { applicationId: id },
    body: { action: 'change_file_name', fileId: 'a', fileName: 'b' },
  })),
];

/**
 * Variants of a valid request, each with the marker in one input, or in all of one kind. The
 * headers are read before routes differ, but those of bytes.
 */
function markedRequests({ method, path, request }: RouteCase): Array<[method: string, path: string, options: SendOptions]> {
  const valid = request(applicationId);
  const query = (valid.query ?? {}) as Record<string, string>;
  const mark = (given: object, value: unknown) => Object.fromEntries(Object.keys(given).map((name) => [name, value]));
  const twice = `${new URLSearchParams(query)}&${new URLSearchParams(mark(query, MARKER) as Record<string, string>)}`;
  const variants: SendOptions[] = [
    ...[twice, ...Object.keys(query).map((name) => ({ ...query, [name]: MARKER }))].map((marked) => ({
      ...valid,
      query: marked,
    })),
    ...(path === KEY_ROUTES[0]?.path || valid.headers ? HEADERS : []).map((name) => ({
      ...valid,
      headers: { ...valid.headers, [name]: MARKER },
    })),
  ];
  if (method !== 'GET') {
    const texts = [MARKER, `{"${MARKER.slice(3)}":`, JSON.stringify([MARKER])];
    const body = (valid.body ?? {}) as object;
    const names = body instanceof Uint8Array ? [] : [...Object.keys(body), MARKER];
    const bodies = [
      ...names.map((name) => ({ ...body, [name]: MARKER })),
      ...(names.length > 0 ? FORMS : []).map((form) => mark(body, form)),
    ];
    variants.push(...[...texts, ...bodies].map((each) => ({ ...valid, body: each })));
  }
  const marked = path.replace(/[0-9a-f-]{36}/, encodeURIComponent(MARKER));
  return [...variants.map((options) => [method, path, options] as [string, string, SendOptions]), [method, marked, valid]];
}

describe('errors never repeat the input', () => {
  it.each(ROUTES.map((one) => [nameOf(one), one] as const))('%s', async (_name, one) => {
    // Uploads leave an avatar, whose image has no envelope.
    const { session } = one.path.endsWith('/avatar') ? await signUp() : owner;
    const answers = await Promise.all(markedRequests(one).map((marked) => session.send(...marked)));
    for (const { success, text } of answers) if (!success) expect(text).not.toMatch(MARKED);
  });

  it('of requests that no route sees', async () => {
    const heads = [
      `GET /${MARKER.replaceAll(' ', '')} HTTP/1.1\r\nHost: a`,
      MARKER,
      `GET / HTTP/1.1\r\nHost: ${MARKER}\r\n${MARKER}`,
      ...['Host', 'Expect'].map((name) => `GET /healthz HTTP/1.1\r\nHost: a\r\n${name}: ${MARKER}`),
    ];
    for (const head of heads) {
      const [answer] = await sendRaw(inject('latchkeyInstance').port, `${head}\r\nConnection: close\r\n\r\n`);
      expect(answer?.text).toMatch(/"success":false/);
      expect(answer?.text).not.toMatch(MARKED);
    }
    expect((await sharedApi().get(`/${encodeURIComponent(MARKER)}`)).text).not.toMatch(MARKED);
  });
});
