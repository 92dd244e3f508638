import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { eventually } from '@latchkey/testkit/eventually';
import { refusalOf } from '@latchkey/testkit/refusal';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { MINUTE_MS, outcomeOf, type TestInstance } from '../testing/identity.ts';
import { REDIRECT_URI, sendJson, startTestIssuer } from '../testing/issuer.ts';
import { comeBack, finishAt, openTestOidc, someone } from '../testing/oidc-flow.ts';

const { issuer, identity } = await openTestOidc();
beforeEach(() => {
  issuer.claims = someone();
});

/** An instance that has not called the issuer yet. */
const fresh = (): TestInstance => identity.connect({ env: issuer.env(), oidcTimeoutMs: 1_000 });
const start = ({ oidc }: TestInstance) => oidc.startOidc({ issuer: 'test', redirectUri: REDIRECT_URI });
const countOf = (path: string) => issuer.asked.filter((asked) => asked === path).length;

const DISCOVERY = '/.well-known/openid-configuration';
const JSON_TYPE = { 'content-type': 'application/json' };
const MIB = Buffer.alloc(1_024 * 1_024, ' ');

/** Writes a blank now and then, for ever. */
function drip(res: ServerResponse): void {
  res.writeHead(200, JSON_TYPE);
  const timer = setInterval(() => res.write(' '), 20);
  res.on('close', () => clearInterval(timer));
}

/** Writes until the connection is closed. */
function flood(res: ServerResponse): void {
  res.writeHead(200, JSON_TYPE);
  const more = () => {
    while (!res.destroyed && res.write(MIB));
  };
  res.on('drain', more);
  more();
}

const FAULTS: ReadonlyArray<readonly [string, (res: ServerResponse) => void]> = [
  ['closes the connection', (res) => void res.destroy()],
  ['does not respond', () => undefined],
  ['drips', drip],
  ['floods', flood],
  [
    'sends a compressed bomb',
    (res) =>
      void res.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end(gzipSync(Buffer.concat(Array(64).fill(MIB)))),
  ],
  ['redirects', (res) => void res.writeHead(302, { location: `${issuer.url}/elsewhere` }).end()],
  ['responds 500', (res) => sendJson(res, 500, { error: 'server_error' })],
  ['responds without a body', (res) => void res.writeHead(204).end()],
  ['responds with null', (res) => sendJson(res, 200, null)],
  ['responds with deep JSON', (res) => void res.writeHead(200, JSON_TYPE).end(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)],
  ['speaks no HTTP', (res) => void res.socket?.end('hello\r\n\r\n')],
];

describe('an issuer whose discovery', () => {
  test.each(FAULTS)('%s is unavailable, and is discovered again the next time', async (_what, fault) => {
    const instance = fresh();
    issuer.answers[DISCOVERY] = (_req, res) => fault(res);
    const error = await refusalOf(start(instance));
    expect(error).toMatchObject({ reason: 'oidc_issuer_unavailable', kind: 'unavailable', code: 'INTERNAL_ERROR' });
    expect(issuer.asked).not.toContain('/elsewhere');
    issuer.answers = {};
    expect(await outcomeOf(start(instance))).toBe('done');
  });

  test.each([
    ['names another issuer', { issuer: 'https://another.test' }],
    ['has no authorization endpoint', { authorization_endpoint: undefined }],
    ['has a script as authorization endpoint', { authorization_endpoint: 'javascript:alert(1)' }],
    ['has a document as authorization endpoint', { authorization_endpoint: 'data:text/html,a' }],
    ['has a fragment in the authorization endpoint', { authorization_endpoint: 'https://another.test/a#b' }],
    ['has credentials in the authorization endpoint', { authorization_endpoint: 'https://a:b@another.test/' }],
    ['has a user name in the token endpoint', { token_endpoint: 'https://a@another.test/' }],
    ['has a very long authorization endpoint', { authorization_endpoint: `https://another.test/${'a'.repeat(2_048)}` }],
    ['has a token endpoint without TLS', { token_endpoint: 'http://another.test/token' }],
    ['has keys without TLS', { jwks_uri: 'http://0.0.0.0/jwks' }],
    ['has a file as UserInfo', { userinfo_endpoint: 'file:///etc/passwd' }],
    ['lists algorithms in another form', { id_token_signing_alg_values_supported: 'RS256' }],
  ])('%s is unavailable', async (_what, metadata) => {
    issuer.metadata = metadata;
    expect(await outcomeOf(start(fresh()))).toBe('oidc_issuer_unavailable');
  });
});

test.each<[string, string, (res: ServerResponse) => void]>([
  ['/token', 'closes the connection', (res) => void res.destroy()],
  ['/token', 'floods', flood],
  ['/jwks', 'does not respond', () => undefined],
  ['/userinfo', 'drips', drip],
])('a sign-in fails in time when %s %s', async (path, _what, fault) => {
  const instance = fresh();
  issuer.userInfo = {};
  issuer.answers[path] = (_req, res) => fault(res);
  const startedAt = performance.now();
  expect(await outcomeOf(finishAt(instance, issuer))).toBe('oidc_issuer_unavailable');
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  issuer.answers = {};
  expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
});

test('metadata and keys are fetched again after a sign-in that failed by them', async () => {
  const instance = fresh();
  issuer.metadata = { token_endpoint: `${issuer.url}/elsewhere` };
  expect(await outcomeOf(finishAt(instance, issuer))).toBe('oidc_issuer_unavailable');
  issuer.metadata = {};
  issuer.answers['/jwks'] = (_req, res) => sendJson(res, 200, { keys: [] });
  expect(await outcomeOf(finishAt(instance, issuer))).toBe('oidc_refused');
  issuer.answers = {};
  expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
});

test.each([
  [256 * 1_024, 'done'],
  [256 * 1_024 + 1, 'oidc_issuer_unavailable'],
])('a response of %i bytes ends as %s', async (byteSize, expected) => {
  const endpoints = { authorization_endpoint: issuer.url, token_endpoint: issuer.url, jwks_uri: issuer.url };
  const metadata = JSON.stringify({ issuer: issuer.url, ...endpoints });
  issuer.answers[DISCOVERY] = (_req, res) => void res.writeHead(200, JSON_TYPE).end(metadata.padEnd(byteSize));
  expect(await outcomeOf(start(fresh()))).toBe(expected);
});

test('an issuer that rejects the client secret is unavailable', async () => {
  const wrong = identity.connect({ env: { ...issuer.env(), OIDC_TEST_CLIENT_SECRET: 'another' } });
  expect(await outcomeOf(finishAt(wrong, issuer))).toBe('oidc_issuer_unavailable');
});

test('a flow is not used up while the issuer is unavailable', async () => {
  const back = await comeBack(fresh(), issuer);
  issuer.answers[DISCOVERY] = (_req, res) => sendJson(res, 503, {});
  const second = fresh();
  expect(await outcomeOf(second.oidc.finishOidc(back))).toBe('oidc_issuer_unavailable');
  issuer.answers = {};
  expect(await outcomeOf(second.oidc.finishOidc(back))).toBe('done');
});

test('metadata is fetched once by concurrent sign-ins and again after an hour, keys once', async () => {
  const instance = fresh();
  const [discoveries, keys] = [countOf(DISCOVERY), countOf('/jwks')];
  await Promise.all(Array.from({ length: 20 }, () => start(instance)));
  for (let i = 0; i < 3; i += 1) expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
  expect([countOf(DISCOVERY), countOf('/jwks')]).toEqual([discoveries + 1, keys + 1]);
  identity.clock.advance(60 * MINUTE_MS);
  await start(instance);
  expect(countOf(DISCOVERY)).toBe(discoveries + 2);
});

test('an issuer that does not respond blocks sign-in at no other issuer', async () => {
  // Half of the 64 calls to all issuers, and the calls that may wait for them.
  const [concurrency, waitingMax, rejected] = [32, 64, 4];
  const slow = await startTestIssuer();
  onTestFinished(() => slow.stop());
  const instance = identity.connect({ env: { ...slow.env('slow'), ...issuer.env(), OIDC_ISSUERS: 'slow,test' } });
  const backs = Array.from({ length: concurrency + waitingMax + rejected }, () =>
    comeBack(instance, slow, { issuerName: 'slow' }),
  );
  const answers: Array<() => void> = [];
  slow.answers['/token'] = (_req, res) => void answers.push(() => sendJson(res, 400, { error: 'invalid_grant' }));
  const ended: string[] = [];
  const callbacks = (await Promise.all(backs)).map(async (back) => ended.push(await outcomeOf(instance.oidc.finishOidc(back))));
  await eventually(() => answers.length >= concurrency && ended.length >= rejected);
  expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
  expect(answers).toHaveLength(concurrency);
  expect(ended).toEqual(Array(rejected).fill('oidc_issuer_unavailable'));
  delete slow.answers['/token'];
  for (const answer of answers) answer();
  await Promise.all(callbacks);
});
