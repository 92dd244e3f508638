import { inspect } from 'node:util';
import { startHttpServer } from '@latchkey/kit/testing/servers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConnectionError, Latchkey, LatchkeyError, type LatchkeyOptions } from './index.ts';

const KEY = 'lk_mgmt_secret';
const OPTIONS = { url: 'https://panel.example.com/latchkey/', key: KEY };

type Outcome = Response | Error;
interface Request {
  readonly url: string;
  readonly init: RequestInit & { readonly headers: Readonly<Record<string, string>> };
}

// Without jitter, a retry waits for what the service said.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0));
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const ok = (data?: unknown, headers: Record<string, string> = {}) =>
  Response.json({ success: true, message: 'Done.', data }, { headers });
const rejected = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ success: false, code, message: 'In words.' }, { status, headers });
const unreachable = (code: string) => Object.assign(new TypeError('fetch failed'), { cause: { code, message: code } });

/** A client, and the requests that it sends; each gets the next outcome, or the last one again. */
function start(outcomes: readonly Outcome[], options: Partial<LatchkeyOptions> = {}) {
  const requests: Request[] = [];
  const send = async (url: unknown, init: unknown) => {
    const outcome = outcomes[Math.min(requests.push({ url, init } as Request), outcomes.length) - 1] as Outcome;
    if (outcome instanceof Error) throw outcome;
    return outcome.clone();
  };
  return { latchkey: new Latchkey({ ...OPTIONS, fetch: send as typeof fetch, ...options }), requests };
}

const read = (latchkey: Latchkey) => latchkey.applications.list();
const write = (latchkey: Latchkey) => latchkey.applications.create({ name: 'Photo Editor' });
const upload = (latchkey: Latchkey) => latchkey.files.upload('1', new Uint8Array(3), { name: 'a' });
const uploadStream = (latchkey: Latchkey) => latchkey.files.upload('1', new Blob(['abc']).stream(), { name: 'a' });
const uploadAvatar = (latchkey: Latchkey) => latchkey.avatar.upload(new Uint8Array(3));
const BUSY = rejected(503, 'INTERNAL_ERROR', { 'retry-after': '0' });

it('sends the key in a header, to the URL with its path, and follows no redirect', async () => {
  const { latchkey, requests } = start([ok([])]);
  await latchkey.files.list('1', { search: 'a"b' });
  const [{ url, init } = { url: '', init: {} }] = requests;
  const search = new URL(url).searchParams;
  expect(url).toMatch(/^https:\/\/panel\.example\.com\/latchkey\/api\/v1\/panel\/get-files-table\?/);
  expect(JSON.parse(search.get('searchParams') ?? '')).toEqual({ searchString: 'a"b', categories: ['Name'] });
  expect(init).toMatchObject({ headers: { authorization: `Bearer ${KEY}` }, redirect: 'manual', credentials: 'omit' });
  expect(inspect(latchkey, { depth: 9, showHidden: true })).not.toContain(KEY);
});

it('has methods that work without their object', async () => {
  const rows = Response.json({ success: true, message: 'Done.', data: [], totalPages: 1 });
  const { latchkey, requests } = start([
    ok(),
    rows,
    ok({ url: 'https://cdn.example.com/a' }),
    new Response('abc'),
    ok({ entries: [], nextCursor: null }),
  ]);
  const { pause } = latchkey.applications;
  const { iterate, download } = latchkey.files;
  const { iterate: iterateEntries } = latchkey.auditLog;
  await pause('1');
  await iterate('1').next();
  expect(await (await download('1', '2')).text()).toBe('abc');
  await iterateEntries().next();
  expect(requests.map(({ url }) => new URL(url).pathname.split('/').pop())).toEqual([
    'update-application-settings',
    'get-files-table',
    'create-download-url',
    'a',
    'audit-log',
  ]);
});

it('takes undefined for every optional property, and sends none of them', async () => {
  const { latchkey, requests } = start([ok({ account: {}, csrfToken: 'a' })]);
  const unset = undefined as string | undefined;
  await latchkey.account.signIn({ email: 'a', password: 'b', code: unset });
  await latchkey.apiKeys.update('1', { name: 'c', expiresAt: unset });
  await latchkey.apiKeys.rotate('1', { overlapSeconds: undefined });
  await latchkey.applications.delete('1', { code: unset });
  await latchkey.auditLog.list({ action: unset });
  expect(requests.map(({ init }) => init.body)).toEqual([
    '{"email":"a","password":"b"}',
    '{"name":"c"}',
    '{}',
    '{"applicationId":"1","code":""}',
    undefined,
  ]);
  expect(requests.at(-1)?.url).toMatch(/audit-log$/);
});

it('changes what was read only, also behind a proxy that marks entity tags as weak', async () => {
  const { latchkey, requests } = start([ok({ version: '1.0' }, { etag: 'W/"a"' }), ok()]);
  const { etag } = await latchkey.applications.readSettings('1');
  await latchkey.applications.update('1', { version: '2', status: 'paused' }, { ifMatch: etag });
  // The first change gives the settings another tag.
  expect(requests.map(({ init }) => init.headers['if-match'])).toEqual([undefined, '"a"', undefined]);
});

it.each([
  ['a read after 503', read, BUSY, 3],
  ['a read after a lost connection', read, unreachable('ECONNRESET'), 3],
  ['a write after 429', write, rejected(429, 'rate_limit_reached', { 'retry-after': '0' }), 3],
  ['a write that was not sent', write, unreachable('ECONNREFUSED'), 3],
  ['an upload after 503', upload, BUSY, 3],
  ['an upload after a lost connection', upload, unreachable('ECONNRESET'), 3],
  ['an upload of an avatar after a lost connection', uploadAvatar, unreachable('ECONNRESET'), 3],
  ['no upload of a stream', uploadStream, BUSY, 1],
  ['a write after 503', write, BUSY, 3],
  ['a write after a lost connection', write, unreachable('ECONNRESET'), 3],
  ['a write whose first request is still running', write, rejected(409, 'idempotency_in_progress', { 'retry-after': '0' }), 3],
  ['no sign-in after 503', (latchkey: Latchkey) => latchkey.account.signIn({ email: 'a', password: 'b' }), BUSY, 1],
  ['no read after 503 without Retry-After', read, rejected(503, 'INTERNAL_ERROR'), 1],
  ['no read after a wait of more than 30 s', read, rejected(429, 'rate_limit_reached', { 'retry-after': '31' }), 1],
  ['no read after 500', read, rejected(500, 'INTERNAL_ERROR'), 1],
] as const)('repeats %s', async (_name, call, outcome, expected) => {
  const { latchkey, requests } = start([outcome]);
  await expect(call(latchkey)).rejects.toBeInstanceOf(LatchkeyError);
  expect(requests).toHaveLength(expected);
  expect(new Set(requests.map(({ init }) => new Headers(init.headers).get('idempotency-key'))).size).toBe(1);
});

it('waits as long as the service says, and no longer once it is aborted', async () => {
  const stop = new AbortController();
  const { latchkey, requests } = start([rejected(429, 'rate_limit_reached', { 'retry-after': '20' })]);
  const call = latchkey.limits.get({ signal: stop.signal });
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  stop.abort(new Error('enough'));
  await expect(call).rejects.toThrow('enough');
  expect(requests).toHaveLength(1);
});

it('reports what the service said, with the rules that inputs break', async () => {
  const details = [{ path: 'body.name', message: 'must be 6 to 32 characters' }];
  const body = { success: false, code: 'VALIDATION_ERROR', message: 'Request does not match the schema', details };
  const { latchkey } = start([Response.json(body, { status: 400, headers: { 'x-request-id': 'r1', 'retry-after': '7' } })]);
  const message = 'Request does not match the schema: name must be 6 to 32 characters.';
  const facts = { code: body.code, status: 400, message, details, requestId: 'r1', retryAfterSeconds: 7 };
  await expect(write(latchkey)).rejects.toMatchObject(facts);
});

it('reports a rule that is the message once', async () => {
  const message = 'The release is not published';
  const body = { success: false, code: 'bad_request', message, details: [{ path: 'request', message: `${message}.` }] };
  const { latchkey } = start([Response.json(body, { status: 400 })]);
  await expect(write(latchkey)).rejects.toThrow(new RegExp(`^${message}$`));
});

it.each([
  ['a page', new Response('<html>', { status: 502 }), LatchkeyError, 'unexpected_response', 502],
  ['a redirect', new Response(null, { status: 301, headers: { location: '/' } }), LatchkeyError, 'unexpected_response', 301],
  ['a page with 200', new Response('<html>'), LatchkeyError, 'unexpected_response', 200],
  ['no response', unreachable('EHOSTUNREACH'), ConnectionError, 'connection_failed', 0],
  ['none in time', new DOMException('late', 'TimeoutError'), ConnectionError, 'timeout', 0],
])('reports %s as an error of this client', async (_name, outcome, type, code, status) => {
  const { latchkey } = start([outcome], { retries: 0 });
  const err = await read(latchkey).catch((one) => one);
  expect(err).toBeInstanceOf(type);
  expect(err).toMatchObject({ code, status, details: [] });
});

it('resolves with no empty id where the response names no application', async () => {
  const { latchkey } = start([ok()]);
  await expect(write(latchkey)).rejects.toMatchObject({ code: 'unexpected_response', status: 200 });
});

it('ends a request that takes too long', async () => {
  const send = (_url: unknown, { signal }: RequestInit) =>
    new Promise<Response>((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
  const latchkey = new Latchkey({ ...OPTIONS, fetch: send as typeof fetch, timeoutMs: 1, retries: 0 });
  await expect(read(latchkey)).rejects.toMatchObject({ code: 'timeout' });
});

it('reads the CSRF token before the first write of a session, and again when it is no longer valid', async () => {
  const renewed = ok({ csrfToken: 'new' }, { 'set-cookie': 'session=s; Path=/' });
  const responses = [ok({ csrfToken: 'old' }), ok(), rejected(403, 'csrf_invalid'), renewed, ok()];
  const { latchkey, requests } = start(responses, { key: undefined });
  await latchkey.levels.set('1', ['Basic']);
  await latchkey.levels.set('1', ['Pro']);
  const sent = requests.map(({ init }) => [init.method, init.headers['x-csrf-token'], init.headers.cookie]);
  expect(sent).toEqual([
    ['GET', undefined, undefined],
    ['POST', 'old', undefined],
    ['POST', 'old', undefined],
    ['GET', undefined, undefined],
    ['POST', 'new', 'session=s'],
  ]);
});

it.each([
  [{ key: 'lk_mgmt_secret\nx' }, 'key has characters'],
  [{ key: '' }, 'key has characters'],
  [{ url: 'https://ada:secret@panel.example.com' }, 'user name or a password'],
  [{ url: 'panel.example.com' }, 'url must be'],
  [{ retries: 11 }, 'retries must be'],
  [{ timeoutMs: 1500.5 }, 'timeoutMs must be'],
  [{ timeoutMs: 2 ** 31 }, 'timeoutMs must be'],
])('rejects %j, and repeats no secret', (options, message) => {
  const create = () => new Latchkey({ ...OPTIONS, ...options });
  expect(create).toThrow(message);
  expect(create).not.toThrow('secret');
});

it('rejects a socket key that would break a header, and does not repeat it', async () => {
  const socketKey = 'lk_sock_secret\n';
  const err = await new Latchkey(OPTIONS)
    .events({ socketKey })
    .next()
    .catch((one) => one);
  expect(err.message).toMatch(/^socketKey has characters/);
  expect(err.message).not.toContain('secret');
});

describe('an upload', () => {
  it('rejects empty and too large sources before they are hashed and sent, and names size and limit', async () => {
    const large = new Blob([new Uint8Array(1_048_577)]);
    const { latchkey, requests } = start([ok({ fileSizeMiB: 1 }), rejected(403, 'insufficient_scope'), ok({ checksum: '' })]);
    await expect(latchkey.files.upload('1', new Uint8Array(0), { name: 'a' })).rejects.toMatchObject({
      code: 'invalid_file',
      message: 'a is empty: files have at least 1 byte.',
    });
    expect(requests).toEqual([]);
    await expect(latchkey.files.upload('1', large, { name: 'b.bin' })).rejects.toMatchObject({
      code: 'limit_exceeded',
      message: 'b.bin is too large: it has 1.1 MiB, and files have at most 1 MiB.',
    });
    // A key that may not read limits uploads without the check.
    await expect(latchkey.files.upload('1', large, { name: 'b.bin' })).rejects.toMatchObject({ code: 'checksum_mismatch' });
    expect(requests.map(({ url }) => /([\w-]+)(\?|$)/.exec(url)?.[1])).toEqual([
      'get-account-limits',
      'get-account-limits',
      'upload-file',
    ]);
  });

  const failure = new Error('of the caller');
  const rejectFailure = async function* () {
    yield new Uint8Array(3);
    throw failure;
  };
  const throwFailure = () => {
    throw failure;
  };

  it.each([
    ['its source by node:http', rejectFailure, undefined, undefined],
    ['its source by fetch', rejectFailure, undefined, fetch],
    ['onProgress by node:http', () => new Uint8Array(3), throwFailure, undefined],
    ['onProgress by fetch', () => new Uint8Array(3), throwFailure, fetch],
  ])('rejects with the error of %s', async (_name, source, onProgress, fetch) => {
    const url = await startHttpServer((req, res) => void req.resume().on('end', () => res.end()));
    const latchkey = new Latchkey({ ...OPTIONS, url, fetch });
    await expect(latchkey.files.upload('1', source(), { name: 'a', onProgress })).rejects.toBe(failure);
  });

  it.each([
    ['node:http', undefined],
    ['fetch', fetch],
  ])('ends with its signal by %s while its source gives no next chunk', async (_name, fetch) => {
    const url = await startHttpServer((req) => void req.resume());
    const latchkey = new Latchkey({ ...OPTIONS, url, fetch });
    const stop = new AbortController();
    const stall = async function* () {
      yield new Uint8Array(3);
      stop.abort(failure);
      await new Promise(() => undefined);
    };
    await expect(latchkey.files.upload('1', stall(), { name: 'a', signal: stop.signal })).rejects.toBe(failure);
  });

  it('gives fetch chunks that stay, also of a source that uses its buffer again', async () => {
    const sent: Uint8Array[] = [];
    const collect = async (_url: unknown, { body }: { readonly body: AsyncIterable<Uint8Array> }) => {
      for await (const chunk of body) sent.push(chunk);
      return ok({ checksum: '' });
    };
    const latchkey = new Latchkey({ ...OPTIONS, fetch: collect as unknown as typeof fetch });
    const buffer = Buffer.alloc(1);
    const reuse = async function* () {
      for (const text of 'abc') yield buffer.fill(text);
    };
    await expect(latchkey.files.upload('1', reuse(), { name: 'a' })).rejects.toMatchObject({ code: 'checksum_mismatch' });
    expect(Buffer.concat(sent).toString()).toBe('abc');
  });

  it('rejects a time that no timer has', async () => {
    const options = { name: 'a', timeoutMs: Number.POSITIVE_INFINITY };
    const { latchkey, requests } = start([ok()]);
    await expect(latchkey.files.upload('1', new Uint8Array(3), options)).rejects.toThrow('timeoutMs must be');
    expect(requests).toEqual([]);
  });

  it('sends no request in a browser after an abort while the content is hashed', async () => {
    const sent: unknown[] = [];
    class Xhr {
      readonly upload = {};
      readonly status = 200;
      readonly responseText = JSON.stringify({ success: true, message: 'Done.', data: {} });
      readonly onload = () => undefined;
      readonly open = () => undefined;
      readonly setRequestHeader = () => undefined;
      send(body: unknown) {
        sent.push(body);
        this.onload();
      }
    }
    vi.stubGlobal('XMLHttpRequest', Xhr);
    const { Latchkey: BrowserLatchkey } = await import('./browser.ts');
    const stop = new AbortController();
    const uploaded = new BrowserLatchkey(OPTIONS).files.upload('1', new Uint8Array(3), { name: 'a', signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(uploaded).rejects.toThrow('enough');
    expect(sent).toEqual([]);
  });
});
