import { beforeAll, expect, inject, it } from 'vitest';
import { checkAnswer } from '../testing/api.ts';
import { createApplication, createKey, type Key, type Owner, readState, signUp } from '../testing/caller.ts';
import { ACTION, TABLE, upload } from '../testing/files.ts';
import { hostileBody, hostileHeader, hostileText } from '../testing/hostile.ts';
import { SeededRandom } from '../testing/random.ts';
import { sendRaw } from '../testing/raw-request.ts';
import { KEY_ROUTES, type RouteCase, SESSION_ROUTES } from '../testing/routes.ts';

/** `FUZZ_SEED` repeats a run, and `FUZZ_ROUNDS` makes a longer one. */
const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 32));
const ROUNDS = Number(process.env.FUZZ_ROUNDS ?? 1_500);
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

const route = (method: RouteCase['method'], path: string, request: RouteCase['request']): RouteCase => ({
  method,
  path,
  request,
});
const searchParams = '{"searchString":"a","categories":["Name"]}';
const ROUTES = [
  // Signing out would leave nothing to try.
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
const HEADERS =
  'X-Request-Id X-Forwarded-For Origin X-CSRF-Token Content-Type Cookie Accept Content-Encoding X-Http-Method Range If-None-Match Accept-Encoding Connection Te Prefer Forwarded Content-Digest Expect';
const QUERY_NAMES = ['applicationId', 'fileName', 'currentPage', 'searchParams', 'x', '__proto__', ''];

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
  while (random.oneIn(4)) headers.push(`${random.pick(HEADERS.split(' '))}: ${hostileHeader(random)}`);
  const line = `${method} ${target}${search && `?${search}`} HTTP/1.1`;
  return `${line}\r\nHost: x\r\n${headers.join('\r\n')}\r\nConnection: close\r\n\r\n${bytes}`;
}

function credentials(random: SeededRandom): string[] {
  const dice = random.below(8);
  if (dice === 0) return [];
  if (dice === 1) return [`Authorization: ${hostileHeader(random)}`];
  return dice < 5 ? [`Authorization: Bearer ${key.text}`] : [`Cookie: ${owner.cookie}`, `X-CSRF-Token: ${owner.csrfToken}`];
}

const encode = (text: string) => encodeURIComponent(text.toWellFormed());

it(`whatever is sent gets the envelope and never a failure (FUZZ_SEED=${SEED})`, async () => {
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
      checkAnswer(what, { ...answer, headers: new Headers(answer.headers) });
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  expect(await readState(bystander)).toBe(before);
  // The requests are worth something only if they reach each check.
  for (const status of [200, 400, 401, 404]) expect(statuses.get(status), `responses with ${status}`).toBeGreaterThan(5);
});
