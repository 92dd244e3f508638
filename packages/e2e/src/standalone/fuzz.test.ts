import { beforeAll, expect, inject, it } from 'vitest';
import { checkAnswer } from '../client/api.ts';
import { createApplication, createKey, type Key, MARKER, type Owner, readState, signUp } from '../client/caller.ts';
import { ACTION, TABLE, upload } from '../client/files.ts';
import { SeededRandom } from '../client/random.ts';
import { sendRaw } from '../client/raw-request.ts';
import { KEY_ROUTES, type RouteCase, SESSION_ROUTES } from '../client/routes.ts';

/** `FUZZ_SEED` repeats a run, and `FUZZ_ROUNDS` makes a longer one. */
const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 32));
const ROUNDS = Number(process.env.FUZZ_ROUNDS ?? 600);
const WORKERS = 16;

let owner: Owner;
let bystander: Owner;
let key: Key;
let applicationId: string;
/** The one that may be deleted. */
let doomed: string;
let fileId: string;
beforeAll(async () => {
  [owner, bystander] = await Promise.all([signUp(), signUp()]);
  key = await createKey(owner);
  [applicationId, doomed] = [await createApplication(owner.session), await createApplication(owner.session)];
  fileId = (await upload(owner.session, applicationId, 'fuzzed')).data.id;
  await upload(bystander.session, await createApplication(bystander.session), 'kept');
  await createKey(bystander);
});

const route = (method: RouteCase['method'], path: string, request: RouteCase['request']) => ({ method, path, request });
const searchParams = '{"searchString":"a","categories":["Name"]}';
const ROUTES = [
  // Signing out would end the session that the other requests need.
  ...[...KEY_ROUTES, ...SESSION_ROUTES].filter(({ path }) => !path.includes('/sign-out')),
  route('POST', '/api/v1/auth/sign-in', () => ({ body: { email: 'unknown@example.com', password: 'a long passphrase' } })),
  route('POST', '/api/v1/auth/sign-up', () => ({ body: { username: 'x', email: 'unknown', password: 'short' } })),
  route('GET', TABLE, (id) => ({ query: { searchParams, currentPage: '1', applicationId: id } })),
  route('POST', ACTION, (id) => ({
    query: { applicationId: id },
    body: { action: 'change_file_name', fileId, fileName: 'renamed' },
  })),
];

const METHODS = ['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS'];
const WORDS =
  'a paused online version status socketKey delete_file change_file_name applications:read true null 0 -1 1e400 __proto__ constructor';

/** Texts that are unlikely to be handled. */
const TEXTS = [
  ...[
    '',
    ' ',
    ...WORDS.split(' '),
    ...[MARKER, MARKER, MARKER.repeat(60)],
    '{"searchString":"%_\\\\","categories":["Name"]}',
    '[[[[[[[[[[]]]]]]]]]]',
    "' OR 1=1; DROP TABLE account; --",
  ],
  ...['\0', 'a\0b', '\ud800', '\udfff\ud800', '\ufeff', '\u202e', '😀'.repeat(17), 'e\u0301'.repeat(20), '\r\nX-Injected: 1'],
  ...['{{7*7}}<%= 7*7 %>', '../../../../etc/passwd', '%00%ff%zz', '2999-01-01T00:00:00Z', '+275760-09-13T00:00:00.001Z'],
  ...['00000000-0000-0000-0000-000000000000', '01900000-0000-7000-8000-00000000dead', 'a'.repeat(33), 'a'.repeat(1_025)],
];
const NAMES =
  'name levels field value type applicationId code scopes allApplications applicationIds expiresAt action fileId fileName'.split(
    ' ',
  );
const OTHER_NAMES = ['username', 'email', 'password', '__proto__', 'constructor', 'toString', '', '\0', 'length'];
const NUMBERS = [0, -0, 1, -1, 0.1, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308, Number.MIN_VALUE];
const HEADER_VALUES = [...' a , ; " = \xff\xfe * -1 0 __proto__ %00 {} null é'.split(' '), ' ', '\t', 'a'.repeat(2_000)];

const HEADERS =
  'X-Request-Id X-Forwarded-For Origin X-CSRF-Token Content-Type Cookie Content-Encoding X-Http-Method Range If-None-Match Connection Te Forwarded Content-Digest Expect';
const QUERY_NAMES = ['applicationId', 'fileName', 'currentPage', 'searchParams', 'x', '__proto__', ''];

function hostileText(random: SeededRandom): string {
  return random.oneIn(4) ? random.pick(TEXTS) + random.pick(TEXTS) : random.pick(TEXTS);
}

/** Any JSON value, more often an unexpected one. */
function hostileValue(random: SeededRandom, depth = 3): unknown {
  const nested = () => hostileValue(random, depth - 1);
  const name = () => random.pick([...NAMES, ...OTHER_NAMES]);
  const kinds = [
    () => null,
    () => random.oneIn(2),
    () => random.pick(NUMBERS),
    () => hostileText(random),
    () => hostileText(random),
  ];
  if (depth > 0) kinds.push(() => Array.from({ length: random.below(4) }, nested) as never);
  if (depth > 0) kinds.push(() => Object.fromEntries(Array.from({ length: random.below(5) }, () => [name(), nested()])) as never);
  return random.pick<() => unknown>(kinds)();
}

/** A valid body with a part changed, removed or added, or another body; sometimes with junk. */
function hostileBody(random: SeededRandom, valid: object | undefined): string {
  if (!valid || random.oneIn(8)) return JSON.stringify(hostileValue(random));
  const body = { ...valid } as Record<string, unknown>;
  const name = random.pick(Object.keys(body));
  const choice = random.below(8);
  if (choice === 0) delete body[name];
  else body[choice === 1 ? hostileText(random) : name] = hostileValue(random);
  const text = JSON.stringify(body);
  const at = random.below(text.length + 1);
  return random.oneIn(5)
    ? text.slice(0, at) + random.pick(['"', '{', ',', '\\u', '\0']) + text.slice(at + random.below(2))
    : text;
}

/** A request that is right but for one or a few things. */
function hostileRequest(random: SeededRandom): string {
  const { method: ownMethod, path, request } = random.pick(ROUTES);
  const valid = request(path.endsWith('delete-application') ? doomed : applicationId);
  const method = random.oneIn(12) ? random.pick(METHODS) : ownMethod;
  let target = random.oneIn(12) ? `${path}${encodeURIComponent(random.pick(['/', 'x', '\0', ';', '%']))}` : path;
  if (random.oneIn(20)) target = target.replace(/[^/]+$/, () => encode(hostileText(random)));
  const query = Object.entries((valid.query ?? {}) as Record<string, string>);
  if (random.oneIn(6)) query.push([random.pick(QUERY_NAMES), hostileText(random)]);
  if (query.length > 0 && random.oneIn(4)) query[0] = [query[0]?.[0] ?? '', hostileText(random)];
  const search = query.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');
  const takesBytes = valid.body instanceof Uint8Array;
  const body = method === 'GET' && !random.oneIn(8) ? '' : hostileBody(random, takesBytes ? undefined : (valid.body as object));
  const bytes = Buffer.from(body).toString('latin1');
  const type = takesBytes && !random.oneIn(8) ? 'application/octet-stream' : 'application/json';
  const headers = [...credentials(random), ...(body === '' ? [] : [`Content-Type: ${type}`, `Content-Length: ${bytes.length}`])];
  while (random.oneIn(4)) headers.push(`${random.pick(HEADERS.split(' '))}: ${random.pick(HEADER_VALUES)}`);
  const line = `${method} ${target}${search && `?${search}`} HTTP/1.1`;
  return `${line}\r\nHost: x\r\n${headers.join('\r\n')}\r\nConnection: close\r\n\r\n${bytes}`;
}

function credentials(random: SeededRandom): string[] {
  const dice = random.below(8);
  if (dice === 0) return [];
  if (dice === 1) return [`Authorization: ${random.pick(HEADER_VALUES)}`];
  return dice < 5 ? [`Authorization: Bearer ${key.text}`] : [`Cookie: ${owner.cookie}`, `X-CSRF-Token: ${owner.csrfToken}`];
}

const encode = (text: string) => encodeURIComponent(text.toWellFormed());

it(`whatever is sent gets the envelope, never a failure, and no error repeats it (FUZZ_SEED=${SEED})`, async () => {
  const before = await readState(bystander);
  const random = new SeededRandom(SEED);
  const requests = Array.from({ length: ROUNDS }, () => hostileRequest(random));
  const statuses = new Map<number, number>();
  const worker = async () => {
    for (let request = requests.pop(); request !== undefined; request = requests.pop()) {
      const [answer] = await sendRaw(inject('latchkeyInstance').port, request);
      const what = JSON.stringify(request.slice(0, 1_500));
      // A response to HEAD has no body to wait for.
      if (request.startsWith('HEAD')) continue;
      if (!answer) throw new Error(`${what} had no response`);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      const { success, text } = checkAnswer(what, { ...answer, headers: new Headers(answer.headers) });
      if (!success) expect(text, what).not.toMatch(/zq.?.?Marker/);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  expect(await readState(bystander)).toBe(before);
  // The requests are worth something only if they reach each check.
  for (const status of [200, 400, 401, 404]) expect(statuses.get(status), `responses with ${status}`).toBeGreaterThan(5);
});
