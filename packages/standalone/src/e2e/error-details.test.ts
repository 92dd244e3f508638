import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, SendOptions } from '../testing/api.ts';
import { createApplication, createKey, type Owner, sharedApi, signUp } from '../testing/caller.ts';
import { ACTION, CHECK_NAME, TABLE, UPLOAD } from '../testing/files.ts';
import { sendRaw } from '../testing/raw-request.ts';
import { KEY_ROUTES, nameOf, type RouteCase, SESSION_ROUTES } from '../testing/routes.ts';

const KEYS = '/api/v1/panel/api-keys';
const CREATE = '/api/v1/panel/create-application';
const LEVELS = '/api/v1/panel/create-application-license-levels';
const SETTINGS = '/api/v1/panel/update-application-settings';
const AUDIT_LOG = '/api/v1/panel/audit-log';
const SIGN_UP = '/api/v1/auth/sign-up';
const FILE_NAME_RULE =
  'must be 1 to 16 characters: ASCII letters, digits, underscores and dashes, with single spaces or dots between them';

let owner: Owner;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
  applicationId = await createApplication(owner.session);
});

type Details = Array<{ path: string; message: string }>;
const detailsOf = ({ text }: Answer): Details => (JSON.parse(text) as { details: Details }).details;
const LONG = 'a'.repeat(70_000);

describe('details name the input and the rule', () => {
  it.each<[method: string, path: string, options: SendOptions, details: Array<[path: string, message: string]>]>([
    ['POST', CREATE, {}, [['body', 'must be a JSON object']]],
    ['POST', CREATE, { body: {} }, [['body.name', 'is required']]],
    ['POST', CREATE, { body: { name: 'short' } }, [['body.name', 'must be 6 to 32 characters']]],
    ['POST', CREATE, { body: { name: 7 } }, [['body.name', 'must be a string']]],
    ['POST', CREATE, { body: { name: 'long enough', more: 1 } }, [['body', 'has an unknown property; known are name']]],
    ['POST', CREATE, { body: '{' }, [['body', 'must be JSON in UTF-8']]],
    ['POST', CREATE, { body: '{"name":"a","name":"b"}' }, [['body', 'must not have a property twice']]],
    ['POST', CREATE, { body: { name: LONG } }, [['body', 'must be at most 64 KiB']]],
    [
      'POST',
      CREATE,
      { body: 'x', headers: { 'content-type': 'text/plain' } },
      [['header.content-type', 'must be application/json']],
    ],
    [
      'POST',
      CREATE,
      { body: '{}', headers: { 'content-encoding': 'gzip' } },
      [['header.content-encoding', 'must be identity or absent']],
    ],
    ['GET', CREATE, {}, [['request', 'must use the method POST']]],
    ['POST', LEVELS, { body: { levels: ['a'] } }, [['query.applicationId', 'is required']]],
    ['POST', LEVELS, { query: 'applicationId=a&applicationId=b', body: { levels: [] } }, [['body.levels', 'must not be empty']]],
    [
      'POST',
      LEVELS,
      { query: 'applicationId=a', body: { levels: ['a', ''] } },
      [['body.levels.1', 'must be 1 to 16 characters']],
    ],
    [
      'POST',
      LEVELS,
      { query: 'applicationId=a', body: { levels: ['a', 'a'] } },
      [['body.levels', 'must not have a level twice']],
    ],
    [
      'POST',
      LEVELS,
      { query: 'applicationId=a', body: { levels: Array(50).fill('') } },
      Array.from({ length: 10 }, (_, i) => [`body.levels.${i}`, 'must be 1 to 16 characters']),
    ],
    [
      'GET',
      TABLE,
      { query: 'applicationId=a&applicationId=b&currentPage=0' },
      [
        ['query.applicationId', 'must be given once'],
        ['query.currentPage', 'must be a whole number from 1'],
      ],
    ],
    [
      'GET',
      TABLE,
      { query: 'applicationId=a&searchParams={}' },
      [['query.searchParams', 'must be JSON of up to 1,024 characters: {"searchString": string, "categories": ["Name"]}']],
    ],
    ['POST', CHECK_NAME, { query: 'applicationId=a', body: { fileName: 'a'.repeat(17) } }, [['body.fileName', FILE_NAME_RULE]]],
    ['POST', ACTION, { query: 'applicationId=a', body: { fileId: 'a' } }, [['body.action', 'is required']]],
    [
      'POST',
      ACTION,
      { query: 'applicationId=a', body: { action: 'x', fileId: 'a' } },
      [['body.action', 'must be delete_file or change_file_name']],
    ],
    [
      'POST',
      UPLOAD,
      { query: `applicationId=a&fileName=${'a'.repeat(17)}`, body: new Uint8Array(1), headers: { 'content-type': '' } },
      [['header.content-type', 'must be application/octet-stream']],
    ],
    [
      'PATCH',
      SETTINGS,
      { query: 'applicationId=a', body: { field: 'x', value: null } },
      [
        [
          'body.field',
          'must be applicationLicenseRequiresClientId, applicationUserRequiresClientId, applicationUserRequiresLicense, version or status',
        ],
        ['body.value', 'must be a boolean or a string'],
      ],
    ],
    ['GET', AUDIT_LOG, { query: 'limit=101' }, [['query.limit', 'must be a whole number from 1 to 100']]],
    ['GET', AUDIT_LOG, { query: 'cursor=x' }, [['query.cursor', 'must be the nextCursor of a page']]],
    [
      'POST',
      SIGN_UP,
      { body: { username: 'a b', email: 'nobody', password: 'short' } },
      [
        ['body.username', 'must be 3 to 32 ASCII letters, digits, underscores and dashes'],
        ['body.email', 'must be an email address'],
        ['body.password', 'must be 10 to 128 characters without NUL'],
      ],
    ],
    ['GET', '/api/v1/auth/oidc/start', {}, [['query.issuer', 'is required']]],
    ['POST', `${KEYS}/x/revoke`, { body: { more: 1 } }, [['body', 'must be absent or empty']]],
  ])('%s %s %j', async (method, path, options, expected) => {
    const answer = await owner.session.send(method, path, options);
    expect(answer.success).toBe(false);
    expect(detailsOf(answer)).toEqual(expected.map(([name, message]) => ({ path: name, message })));
  });

  it('also where a service refuses what the schema let through', async () => {
    const { session } = owner;
    const key = await createKey(owner);
    const refuse = async (answer: Promise<Answer>) => detailsOf(await answer);
    const set = (field: string, value: unknown) => session.patch(SETTINGS, { field, value }, { applicationId });
    const change = (body: object) => session.patch(`${KEYS}/${key.id}`, body);
    const one = (path: string, message: string) => [{ path, message }];
    expect(await refuse(set('status', 'asleep'))).toEqual(one('body.value', 'must be online or paused for this field'));
    expect(await refuse(set('applicationUserRequiresLicense', 'true'))).toEqual(
      one('body.value', 'must be a boolean for this field'),
    );
    expect(await refuse(session.post(ACTION, { action: 'change_file_name', fileId: 'a' }, { applicationId }))).toEqual(
      one('body.fileName', 'is required'),
    );
    expect(await refuse(change({ expiresAt: '9999-12-31T23:59:59-12:00' }))).toEqual(
      one('body.expiresAt', 'must be in the future and before the year 10000'),
    );
    expect(await refuse(change({ applicationIds: [applicationId] }))).toMatchObject([{ path: 'body.applicationIds' }]);
    await session.post(`${KEYS}/${key.id}/revoke`);
    expect(await refuse(change({ name: 'Another' }))).toEqual(one('params.id', 'A revoked API key cannot be changed'));
    expect(await refuse(session.post('/api/v1/auth/two-factor/disable', { code: 'x', password: 'x' }))).toEqual(
      one('request', 'Two-factor authentication is not on'),
    );
    await session.post('/api/v1/auth/two-factor/set-up');
    expect(await refuse(session.post('/api/v1/auth/two-factor/enable', { code: 'x' }))).toEqual(
      one('body.code', 'The code is wrong, or was used before'),
    );
  });
});

/** Breaks every rule for ids, codes, keys and file names. */
const MARKER = 'zq"Marker<%7>qz, twice 2718281828';
const MARKED = /zq.?.?marker|2718281828/i;
const FORMS: readonly unknown[] = [MARKER.repeat(60), [[MARKER]], { [MARKER]: MARKER }, 2_718_281_828];

const PUBLIC: readonly RouteCase[] = [
  { method: 'POST', path: SIGN_UP, request: () => ({ body: { username: 'ada', email: 'a@b.example', password: 'too short' } }) },
  {
    method: 'POST',
    path: '/api/v1/auth/sign-in',
    request: () => ({ body: { email: 'nobody@b.example', password: 'a long passphrase', code: '1' } }),
  },
  { method: 'POST', path: '/api/v1/auth/oidc/complete', request: () => ({ body: { code: '123456' } }) },
  { method: 'GET', path: '/api/v1/auth/oidc/start', request: () => ({ query: { issuer: 'nowhere' } }) },
  { method: 'GET', path: '/api/v1/auth/oidc/callback', request: () => ({ query: { code: 'a', state: 'b' } }) },
  { method: 'GET', path: AUDIT_LOG, request: () => ({ query: { limit: '1', cursor: 'a', action: 'b' } }) },
  {
    method: 'GET',
    path: TABLE,
    request: (id) => ({ query: { applicationId: id, searchParams: '{"searchString":"","categories":[]}' } }),
  },
  {
    method: 'POST',
    path: ACTION,
    request: (id) => ({ query: { applicationId: id }, body: { action: 'change_file_name', fileId: 'a', fileName: 'b' } }),
  },
];

const markAll = <T>(given: object, value: T): Record<string, T> =>
  Object.fromEntries(Object.keys(given).map((name) => [name, value]));

/** Variants of a valid request, each with the marker in one place, or in all of one kind. */
function markedRequests({ method, path, request }: RouteCase): Array<[method: string, path: string, options: SendOptions]> {
  const { query = {}, body = {}, headers } = request(applicationId);
  const valid = { ...request(applicationId), query: query as Record<string, string> };
  const twice = String(
    new URLSearchParams([...Object.entries(valid.query), ...Object.entries(markAll(query as object, MARKER))]),
  );
  const names = ['content-type', 'content-digest', 'content-encoding', 'x-csrf-token', 'origin'];
  const variants: SendOptions[] = [
    ...Object.keys(query as object).map((name) => ({ ...valid, query: { ...valid.query, [name]: MARKER } })),
    { ...valid, query: twice },
    ...names.map((name) => ({ ...valid, headers: { ...headers, [name]: MARKER } })),
  ];
  if (method !== 'GET')
    variants.push(...[MARKER, `{"${MARKER.slice(3)}":`, JSON.stringify([MARKER])].map((text) => ({ ...valid, body: text })));
  if (method !== 'GET' && !(body instanceof Uint8Array)) {
    const changes = [...Object.keys(body as object), MARKER].map((name) => ({ ...(body as object), [name]: MARKER }));
    variants.push(
      ...[...changes, ...FORMS.map((form) => markAll(body as object, form))].map((each) => ({ ...valid, body: each })),
    );
  }
  const marked = path.replace(/[0-9a-f-]{36}/, encodeURIComponent(MARKER));
  return [...variants.map((options) => [method, path, options] as [string, string, SendOptions]), [method, marked, valid]];
}

describe('errors never repeat the input', () => {
  const routes = [...KEY_ROUTES, ...SESSION_ROUTES, ...PUBLIC].filter(({ path }) => !path.includes('/sign-out'));

  it.each(routes.map((route) => [nameOf(route), route] as const))('%s', async (_name, route) => {
    // Uploads leave an avatar, whose image is no envelope.
    const { session } = route.path.endsWith('/avatar') ? await signUp() : owner;
    const answers = await Promise.all(markedRequests(route).map((marked) => session.send(...marked)));
    for (const { success, text } of answers) if (!success) expect(text).not.toMatch(MARKED);
  });

  it('of requests that no route sees', async () => {
    const { port } = inject('latchkeyInstance');
    const requests = [
      `GET /${MARKER.replaceAll(' ', '')} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      `${MARKER}\r\n\r\n`,
      `GET / HTTP/1.1\r\nHost: ${MARKER}\r\n${MARKER}\r\n\r\n`,
      `GET /healthz HTTP/1.1\r\nHost: a\r\nHost: ${MARKER}\r\nConnection: close\r\n\r\n`,
      `GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: ${MARKER}\r\nConnection: close\r\n\r\n`,
    ];
    for (const request of requests) {
      const [answer] = await sendRaw(port, request);
      expect(answer?.text).toMatch(/"success":false/);
      expect(answer?.text).not.toMatch(MARKED);
    }
    expect((await sharedApi().get(`/${encodeURIComponent(MARKER)}`)).text).not.toMatch(MARKED);
  });
});
