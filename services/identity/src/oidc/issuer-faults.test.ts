import { generateKeyPairSync, randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  migrateIdentity,
  outcomeOf,
  refusalOf,
  startTestIdentity,
  type TestIdentity,
  type TestInstance,
} from '../testing/identity.fixture.ts';
import { REDIRECT_URI, sendJson, startTestIssuer, type TestIssuer } from '../testing/issuer.fixture.ts';
import { comeBack, finishAt } from '../testing/oidc-flow.fixture.ts';
import { MINUTE_MS } from '../testing/test-clock.ts';

let database: TestDatabase;
let identity: TestIdentity;
let issuer: TestIssuer;

beforeAll(async () => {
  issuer = await startTestIssuer();
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
  await issuer.stop();
});
beforeEach(() => {
  issuer.reset();
  const name = `oidc-${randomUUID().slice(-12)}`;
  issuer.claims = { sub: randomUUID(), preferred_username: name, email: `${name}@example.test`, email_verified: true };
});

/** An instance that has not asked the issuer anything yet. */
const fresh = (): Promise<TestInstance> => identity.connect({ env: { ...issuer.env(), OIDC_TIMEOUT_MS: '1000' } });
const start = ({ oidc }: TestInstance) => oidc.startOidc({ issuer: 'test', redirectUri: REDIRECT_URI });

const STRANGER = generateKeyPairSync('rsa', { modulusLength: 2_048 }).publicKey.export({ format: 'jwk' });
const DISCOVERY = '/.well-known/openid-configuration';
const MIB = Buffer.alloc(1_024 * 1_024, ' ');

/** Never ends, and never says so. */
function drip(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'application/json' });
  const timer = setInterval(() => res.write(' '), 20);
  res.on('close', () => clearInterval(timer));
}

/** Answers with a flood that stops only when nobody reads any more. */
function flood(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'application/json' });
  const more = () => {
    while (!res.destroyed && res.write(MIB));
  };
  res.on('drain', more);
  more();
}

const FAULTS: ReadonlyArray<readonly [string, (res: ServerResponse) => void]> = [
  ['hangs up', (res) => void res.destroy()],
  ['says nothing', () => undefined],
  ['drips', drip],
  ['floods', flood],
  [
    'answers a bomb',
    (res) =>
      void res
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(gzipSync(Buffer.concat(Array(64).fill(MIB)))),
  ],
  ['leads elsewhere', (res) => void res.writeHead(302, { location: `${issuer.url}/elsewhere` }).end()],
  ['is broken', (res) => sendJson(res, 500, { error: 'server_error' })],
  ['is overloaded', (res) => sendJson(res, 429, { error: 'slow_down' })],
  ['answers nothing', (res) => void res.writeHead(204).end()],
  ['answers a page', (res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<html>')],
  ['answers a list', (res) => sendJson(res, 200, [])],
  ['answers null', (res) => sendJson(res, 200, null)],
  [
    'answers an abyss',
    (res) => void res.writeHead(200, { 'content-type': 'application/json' }).end(`${'['.repeat(100_000)}${']'.repeat(100_000)}`),
  ],
  [
    'answers an abyss within',
    (res) =>
      void res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(`{"issuer":"${issuer.url}","a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
  ],
  ['speaks no HTTP', (res) => void res.socket?.end('hello\r\n\r\n')],
];

describe('an issuer that, asked about itself,', () => {
  test.each(FAULTS)('%s, is unavailable, and is asked again the next time', async (_what, fault) => {
    const instance = await fresh();
    issuer.answers[DISCOVERY] = (_req, res) => fault(res);
    const refusal = await refusalOf(start(instance));
    expect(refusal).toMatchObject({ reason: 'oidc_issuer_unavailable', kind: 'unavailable', code: 'INTERNAL_ERROR' });
    expect(issuer.asked).not.toContain('/elsewhere');
    issuer.answers = {};
    expect(await outcomeOf(start(instance))).toBe('done');
  });

  test.each([
    ['says that it is another', { issuer: 'https://another.test' }],
    ['names no issuer', { issuer: undefined }],
    ['names no URL for one', { issuer: 'nobody' }],
    ['sends browsers nowhere', { authorization_endpoint: undefined }],
    ['sends browsers to a script', { authorization_endpoint: 'javascript:alert(1)' }],
    ['sends browsers over the network in the clear', { authorization_endpoint: 'http://another.test/authorize' }],
    ['has its tokens fetched in the clear', { token_endpoint: 'http://another.test/token' }],
    ['names no keys', { jwks_uri: undefined }],
    ['has people asked for in a file', { userinfo_endpoint: 'file:///etc/passwd' }],
    ['lists algorithms otherwise', { id_token_signing_alg_values_supported: 'RS256' }],
    ['lists ways to authenticate otherwise', { token_endpoint_auth_methods_supported: 7 }],
  ])('%s, is unavailable, and is asked again the next time', async (_what, metadata) => {
    const instance = await fresh();
    issuer.metadata = metadata;
    expect(await outcomeOf(start(instance))).toBe('oidc_issuer_unavailable');
    issuer.metadata = {};
    expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
  });
});

describe.each(['/token', '/jwks', '/userinfo'])('an issuer that, asked at %s,', (path) => {
  test.each(FAULTS)('%s, neither signs anybody in nor is waited for', async (_what, fault) => {
    const instance = await fresh();
    issuer.userInfo = {};
    issuer.answers[path] = (_req, res) => fault(res);
    const startedAt = performance.now();
    const { reason, kind } = await refusalOf(finishAt(instance, issuer));
    expect({ oidc_refused: 'unauthenticated', oidc_issuer_unavailable: 'unavailable' }[reason]).toBe(kind);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(issuer.asked).not.toContain('/elsewhere');
    issuer.answers = {};
    expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
  });
});

test.each([
  ['no keys', []],
  ['a key of another name', [{ ...STRANGER, kid: 'b' }]],
  ["a stranger's key", [{ ...STRANGER, kid: 'a' }]],
  ['a broken key', [{ kty: 'RSA', kid: 'a', use: 'sig' }]],
  ['a key twice', [STRANGER, STRANGER].map((key) => ({ ...key, kid: 'a' }))],
])('an issuer that names %s is asked for its keys again by the next sign-in', async (_what, keys) => {
  const instance = await fresh();
  issuer.answers['/jwks'] = (_req, res) => sendJson(res, 200, { keys });
  expect(await outcomeOf(finishAt(instance, issuer))).toMatch(/^oidc_(refused|issuer_unavailable)$/);
  issuer.answers = {};
  expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
});

test('an issuer is asked about itself again once a sign-in has failed by what it said', async () => {
  const instance = await fresh();
  issuer.metadata = { token_endpoint: `${issuer.url}/elsewhere` };
  expect(await outcomeOf(finishAt(instance, issuer))).toBe('oidc_issuer_unavailable');
  issuer.metadata = {};
  expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
});

test.each([
  ['token_endpoint', '/token'],
  ['jwks_uri', '/jwks'],
  ['userinfo_endpoint', '/userinfo'],
])('a %s that is neither https nor on loopback is never called', async (name, path) => {
  // It is the same server, by an address that does not say so.
  const elsewhere = new URL(path, issuer.url);
  elsewhere.hostname = '0.0.0.0';
  const countOf = () => issuer.asked.filter((asked) => asked === path).length;
  const before = countOf();
  issuer.userInfo = {};
  issuer.metadata = { [name]: elsewhere.href };
  expect(await outcomeOf(finishAt(await fresh(), issuer))).toBe('oidc_issuer_unavailable');
  issuer.metadata = { [name]: 'file:///etc/passwd' };
  expect(await outcomeOf(finishAt(await fresh(), issuer))).toBe('oidc_issuer_unavailable');
  expect(countOf()).toBe(before);
});

test.each([
  [256 * 1_024, 'done'],
  [256 * 1_024 + 1, 'oidc_issuer_unavailable'],
])('an answer of %i bytes ends as %s', async (byteSize, expected) => {
  const endpoints = { authorization_endpoint: issuer.url, token_endpoint: issuer.url, jwks_uri: issuer.url };
  const metadata = JSON.stringify({ issuer: issuer.url, ...endpoints });
  issuer.answers[DISCOVERY] = (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json' }).end(metadata.padEnd(byteSize));
  };
  expect(await outcomeOf(start(await fresh()))).toBe(expected);
});

test('an issuer that nobody reaches is unavailable, and one that is not trusted with a secret too', async () => {
  const nowhere = await startTestIssuer();
  const env = nowhere.env();
  await nowhere.stop();
  expect(await outcomeOf(start(await identity.connect({ env })))).toBe('oidc_issuer_unavailable');
  const wrong = await identity.connect({ env: { ...issuer.env(), OIDC_TEST_CLIENT_SECRET: 'another' } });
  expect(await outcomeOf(finishAt(wrong, issuer))).toBe('oidc_issuer_unavailable');
});

test('a flow that the issuer was away for is not used up', async () => {
  const back = await comeBack(await fresh(), issuer);
  issuer.answers[DISCOVERY] = (_req, res) => sendJson(res, 503, {});
  const second = await fresh();
  expect(await outcomeOf(second.oidc.finishOidc(back))).toBe('oidc_issuer_unavailable');
  issuer.answers = {};
  expect(await outcomeOf(second.oidc.finishOidc(back))).toBe('done');
});

test('what an issuer says of itself is asked once by many at once, and again after an hour; its keys are asked once', async () => {
  const instance = await fresh();
  const countOf = (path: string) => issuer.asked.filter((asked) => asked === path).length;
  const [discoveries, keys] = [countOf(DISCOVERY), countOf('/jwks')];
  await Promise.all(Array.from({ length: 20 }, () => start(instance)));
  for (let i = 0; i < 3; i += 1) expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
  expect([countOf(DISCOVERY), countOf('/jwks')]).toEqual([discoveries + 1, keys + 1]);
  identity.clock.advance(60 * MINUTE_MS);
  await start(instance);
  expect(countOf(DISCOVERY)).toBe(discoveries + 2);
});
