import { beforeAll, describe, expect, inject, it } from 'vitest';
import { checkAnswer } from '../testing/api.ts';
import { createApplication, createKey, type Key, type Owner, readState, signUp } from '../testing/caller.ts';
import { ACTION, findFileId, TABLE, upload } from '../testing/files.ts';
import { hostileBody, hostileHeader, hostileText } from '../testing/hostile.ts';
import { SeededRandom } from '../testing/random.ts';
import { sendRaw } from '../testing/raw-request.ts';
import { KEY_ROUTES, type RouteCase, SESSION_ROUTES } from '../testing/routes.ts';

/** Set `FUZZ_SEED` to repeat a run, and `FUZZ_ROUNDS` for a longer one. */
const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 32));
const ROUNDS = Number(process.env.FUZZ_ROUNDS ?? 1_500);
const AT_ONCE = 16;

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
  await upload(owner.session, applicationId, 'fuzzed');
  fileId = await findFileId(owner.session, applicationId, 'fuzzed');
  await upload(bystander.session, await createApplication(bystander.session), 'kept');
  await createKey(bystander);
});

/** Signing out would leave nothing to try. */
const ROUTES: readonly RouteCase[] = [
  ...[...KEY_ROUTES, ...SESSION_ROUTES].filter(({ path }) => !path.includes('/sign-out')),
  {
    method: 'POST',
    path: '/api/v1/auth/sign-in',
    request: () => ({ body: { email: 'nobody@example.com', password: 'a long passphrase' } }),
  },
  {
    method: 'POST',
    path: '/api/v1/auth/sign-up',
    request: () => ({ body: { username: 'x', email: 'nobody', password: 'short' } }),
  },
  {
    method: 'GET',
    path: TABLE,
    request: (id) => ({
      query: { searchParams: '{"searchString":"a","categories":["Name"]}', currentPage: '1', applicationId: id },
    }),
  },
  {
    method: 'POST',
    path: ACTION,
    request: (id) => ({ query: { applicationId: id }, body: { action: 'change_file_name', fileId, fileName: 'renamed' } }),
  },
];

const METHODS = ['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS'];
const HEADERS = [
  'X-Request-Id',
  'X-Forwarded-For',
  'Origin',
  'X-CSRF-Token',
  'Content-Type',
  'Cookie',
  'Accept',
  'Content-Encoding',
  'X-Http-Method',
  'Range',
  'If-None-Match',
  'Accept-Encoding',
  'Connection',
  'Te',
  'Prefer',
  'Forwarded',
  'Content-Digest',
  'Expect',
];

/** A request that is right but for one or a few things. */
function hostileRequest(random: SeededRandom): string {
  const route = random.pick(ROUTES);
  const valid = route.request(route.path.endsWith('delete-application') ? doomed : applicationId);
  const method = random.oneIn(12) ? random.pick(METHODS) : route.method;
  let target = random.oneIn(12) ? `${route.path}${encodeURIComponent(random.pick(['/', 'x', '\0', ';', '%']))}` : route.path;
  if (random.oneIn(20)) target = target.replace(/[^/]+$/, () => encode(hostileText(random)));
  const query = Object.entries((valid.query ?? {}) as Record<string, string>);
  if (random.oneIn(6))
    query.push([
      random.pick(['applicationId', 'fileName', 'currentPage', 'searchParams', 'x', '__proto__', '']),
      hostileText(random),
    ]);
  if (query.length > 0 && random.oneIn(4)) query[0] = [query[0]?.[0] ?? '', hostileText(random)];
  const search = query.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');
  const takesBytes = valid.body instanceof Uint8Array;
  const body = method === 'GET' && !random.oneIn(8) ? '' : hostileBody(random, takesBytes ? undefined : (valid.body as object));
  const bytes = Buffer.from(body).toString('latin1');
  const type = takesBytes && !random.oneIn(8) ? 'application/octet-stream' : 'application/json';
  const headers = [...credentials(random), ...(body === '' ? [] : [`Content-Type: ${type}`, `Content-Length: ${bytes.length}`])];
  while (random.oneIn(4)) headers.push(`${random.pick(HEADERS)}: ${hostileHeader(random)}`);
  return `${method} ${target}${search === '' ? '' : `?${search}`} HTTP/1.1\r\nHost: x\r\n${headers.join('\r\n')}\r\nConnection: close\r\n\r\n${bytes}`;
}

function credentials(random: SeededRandom): string[] {
  switch (random.below(8)) {
    case 0:
      return [];
    case 1:
      return [`Authorization: ${hostileHeader(random)}`];
    case 2:
    case 3:
    case 4:
      return [`Authorization: Bearer ${key.text}`];
    default:
      return [`Cookie: ${owner.cookie}`, `X-CSRF-Token: ${owner.csrfToken}`];
  }
}

/** Escapes what can't stand in a target, and lone surrogates as they would be in UTF-8. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

describe('whatever is sent', () => {
  it(`is answered with the envelope and never with a failure (FUZZ_SEED=${SEED})`, async () => {
    const before = await readState(bystander);
    const random = new SeededRandom(SEED);
    const requests = Array.from({ length: ROUNDS }, () => hostileRequest(random));
    const statuses = new Map<number, number>();
    const worker = async () => {
      for (let request = requests.pop(); request !== undefined; request = requests.pop()) {
        const [answer] = await sendRaw(inject('latchkeyInstance').port, request);
        const what = JSON.stringify(request.slice(0, 1_500));
        // An answer to HEAD has no body to wait for.
        if (request.startsWith('HEAD')) continue;
        if (!answer) throw new Error(`${what} was not answered`);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        checkAnswer(what, { ...answer, headers: new Headers(answer.headers) });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    expect(await readState(bystander)).toBe(before);
    // The requests are worth something only if they get as far as each check.
    for (const status of [200, 400, 401, 404]) expect(statuses.get(status), `answers with ${status}`).toBeGreaterThan(5);
  });
});
