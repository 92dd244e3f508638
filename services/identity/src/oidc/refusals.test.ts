import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto';
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
import { CLIENT_ID, CLIENT_SECRET, startTestIssuer, type TestIssuer, type TestToken } from '../testing/issuer.fixture.ts';
import { comeBack, finishAt, type Return, signInAt } from '../testing/oidc-flow.fixture.ts';
import { MINUTE_MS } from '../testing/test-clock.ts';

let database: TestDatabase;
let identity: TestIdentity;
let instance: TestInstance;
let issuer: TestIssuer;
let other: TestIssuer;

beforeAll(async () => {
  [issuer, other] = await Promise.all([startTestIssuer(), startTestIssuer()]);
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
  instance = await identity.connect({ env: { ...other.env('other'), ...issuer.env(), OIDC_ISSUERS: 'test, other' } });
});
afterAll(async () => {
  await identity.stop();
  await database.drop();
  await Promise.all([issuer.stop(), other.stop()]);
});

/** What the database holds of accounts, sessions and links. */
async function state(): Promise<unknown[]> {
  const tables = ['account', 'session', 'oidc_link'];
  return Promise.all(tables.map(async (table) => (await identity.db.query(`select * from ${table} order by 1, 2`)).rows));
}

/** Somebody who could sign in at either issuer. */
function someone() {
  const name = `oidc-${randomUUID().slice(-12)}`;
  return { sub: randomUUID(), preferred_username: name, email: `${name}@example.test`, email_verified: true };
}

beforeEach(async () => {
  issuer.reset();
  other.reset();
  issuer.claims = someone();
  other.claims = someone();
});

const codesSent = () => [...issuer.asked, ...other.asked].filter((path) => path === '/token').length;

describe('a browser that comes back', () => {
  test('does so once, also where the issuer would take the code again', async () => {
    issuer.reusesCodes = true;
    const back = await comeBack(instance, issuer);
    expect(await outcomeOf(instance.oidc.finishOidc(back))).toBe('done');
    const [before, sent] = [await state(), codesSent()];
    const replays = await Promise.all(Array.from({ length: 5 }, () => outcomeOf(instance.oidc.finishOidc(back))));
    expect(replays).toEqual(Array(5).fill('oidc_flow_invalid'));
    expect(codesSent()).toBe(sent);
    expect(await state()).toEqual(before);
  });

  test('does so once, also when it comes many times at once and to several instances', async () => {
    issuer.reusesCodes = true;
    const second = await identity.connect({ env: issuer.env() });
    const back = await comeBack(instance, issuer);
    const tries = Array.from({ length: 8 }, (_, i) => outcomeOf((i % 2 ? second : instance).oidc.finishOidc(back)));
    expect((await Promise.all(tries)).sort()).toEqual(['done', ...Array(7).fill('oidc_flow_invalid')]);
  });

  test('has to come within 10 minutes', async () => {
    const [soon, late] = [await comeBack(instance, issuer), await comeBack(instance, issuer)];
    identity.clock.advance(10 * MINUTE_MS - 1);
    expect(await outcomeOf(instance.oidc.finishOidc(soon))).toBe('done');
    identity.clock.advance(1);
    expect(await outcomeOf(instance.oidc.finishOidc(late))).toBe('oidc_flow_invalid');
  });

  test('forgets what flows were used once they are over anyhow', async () => {
    await signInAt(instance, issuer);
    identity.clock.advance(10 * MINUTE_MS);
    await signInAt(instance, issuer);
    const { rows } = await identity.db.query('select * from oidc_used_flow where expires_at <= $1', [identity.clock.now()]);
    expect(rows).toEqual([]);
  });

  test.each<[string, (back: Return, another: Return) => Return]>([
    ['without its cookie', (back) => ({ ...back, flow: '' })],
    ['with the cookie of another flow', (back, { flow }) => ({ ...back, flow: flow ?? '' })],
    ['with a cookie that nobody sealed', (back) => ({ ...back, flow: Buffer.from(JSON.stringify(back)).toString('base64url') })],
    ['with a cookie that was changed', (back) => ({ ...back, flow: `${back.flow?.slice(0, -8)}AAAAAAAA` })],
    ['with a cookie that was cut', (back) => ({ ...back, flow: back.flow?.slice(0, 30) ?? '' })],
    ['with a huge cookie', (back) => ({ ...back, flow: 'A'.repeat(100_000) })],
    ['without a state', ({ state: _, ...back }) => back],
    ['with an empty state', (back) => ({ ...back, state: '' })],
    ['with a wrong state', (back) => ({ ...back, state: randomUUID() })],
    ['with the state of another flow', (back, { state }) => ({ ...back, state: state ?? '' })],
  ])('%s is refused, and no code is sent', async (_what, change) => {
    const [back, another] = [await comeBack(instance, issuer), await comeBack(instance, issuer)];
    const [before, sent] = [await state(), codesSent()];
    const refusal = await refusalOf(instance.oidc.finishOidc(change(back, another)));
    expect(refusal).toMatchObject({ reason: 'oidc_flow_invalid', kind: 'unauthenticated', code: 'unauth' });
    expect(await state()).toEqual(before);
    expect(codesSent()).toBe(sent);
    // And the flow, which nobody else could use up, is still good.
    expect(await outcomeOf(instance.oidc.finishOidc(back))).toBe('done');
  });

  test.each<[string, Return]>([
    ['that the issuer refused', { error: 'access_denied' }],
    ['with an error that nobody knows', { error: 'x'.repeat(1_000) }],
    ['with both a code and an error', { error: 'server_error' }],
    ['without a code', { code: '' }],
    ['with a code that nobody gave', { code: 'a-code' }],
    ['without the issuer, which says that it names itself', { iss: '' }],
    ['from another issuer', { iss: 'https://another.test' }],
  ])('%s is refused', async (_what, change) => {
    const before = await state();
    const refusal = await refusalOf(finishAt(instance, issuer, change));
    expect(refusal).toMatchObject({ reason: 'oidc_refused', kind: 'unauthenticated', code: 'unauth' });
    expect(await state()).toEqual(before);
  });

  test('to an instance that knows nothing of its issuer any more is refused', async () => {
    const back = await comeBack(instance, issuer);
    expect(await outcomeOf(identity.oidc.finishOidc(back))).toBe('oidc_flow_invalid');
    const request = { issuer: 'test', redirectUri: 'https://latchkey.test/' };
    expect(await refusalOf(identity.oidc.startOidc(request))).toMatchObject({
      reason: 'oidc_issuer_not_found',
      kind: 'not_found',
    });
  });
});

const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
const withClaims = (claims: object) => (token: TestToken) => ({ ...token, claims: { ...token.claims, ...claims } });
const withHeader = (header: object) => (token: TestToken) => ({ ...token, header: { ...token.header, ...header } });
const nowS = () => Math.floor(Date.now() / 1000);

describe('a token', () => {
  test.each<[string, TestIssuer['forge']]>([
    ['for another audience', withClaims({ aud: 'another-client' })],
    ['for nobody', withClaims({ aud: [] })],
    ['for several, without saying to whom it was given', withClaims({ aud: [CLIENT_ID, 'another-client'] })],
    ['given to another', withClaims({ aud: [CLIENT_ID, 'another-client'], azp: 'another-client' })],
    ['of another issuer', withClaims({ iss: 'https://another.test' })],
    ['of no issuer', withClaims({ iss: undefined })],
    ['with another nonce', withClaims({ nonce: 'another' })],
    ['without a nonce', withClaims({ nonce: undefined })],
    ['that is over', withClaims({ exp: Math.floor(Date.now() / 1000) - 3_600 })],
    ['without an end', withClaims({ exp: undefined })],
    ['of the future', withClaims({ nbf: Math.floor(Date.now() / 1000) + 3_600 })],
    ['of no time', withClaims({ iat: undefined })],
    ['issued more than a minute ahead', (token) => withClaims({ iat: nowS() + 90 })(token)],
    ['without a subject', withClaims({ sub: undefined })],
    ['with a number for a subject', withClaims({ sub: 7 })],
    ['with an empty subject', withClaims({ sub: '' })],
    ['with a subject with a NUL', withClaims({ sub: 'a\0b' })],
    ['with half a surrogate pair for a subject', withClaims({ sub: '\ud800' })],
    ['with a subject of 256 characters', withClaims({ sub: 's'.repeat(256) })],
    ['signed by a stranger', (token) => ({ ...token, key: stranger })],
    ['signed by nobody', withHeader({ alg: 'none' })],
    ['signed with what everybody has', withHeader({ alg: 'HS256' })],
    ['signed with a key that the issuer does not name', withHeader({ kid: 'b' })],
    ['of an algorithm that there is not', withHeader({ alg: 'RS257' })],
    ['that wants what nobody knows', withHeader({ crit: ['exp'] })],
  ])('%s is not believed', async (_what, forge) => {
    issuer.forge = forge;
    const before = await state();
    const refusal = await refusalOf(finishAt(instance, issuer));
    expect(refusal).toMatchObject({ reason: 'oidc_refused', kind: 'unauthenticated', code: 'unauth' });
    expect(await state()).toEqual(before);
  });

  test('with a subject of 255 characters, over for 20 seconds and issued 50 seconds ahead, is believed', async () => {
    issuer.forge = withClaims({ sub: 's'.repeat(255), exp: nowS() - 20, iat: nowS() + 50 });
    expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
  });

  test('signed by nobody is not believed, also where the issuer says that this is its way', async () => {
    issuer.metadata = { id_token_signing_alg_values_supported: ['none', 'HS256'] };
    const fresh = await identity.connect({ env: issuer.env() });
    for (const alg of ['none', 'HS256']) {
      issuer.forge = withHeader({ alg });
      expect(await outcomeOf(finishAt(fresh, issuer)), alg).toBe('oidc_refused');
    }
  });
});

test('the issuer is asked with PKCE by S256, a nonce and a state that are new each time', async () => {
  const request = { issuer: 'test', redirectUri: 'https://latchkey.test/api/v1/auth/oidc/callback' };
  const urls = await Promise.all([instance.oidc.startOidc(request), instance.oidc.startOidc(request)]);
  const [first, second] = urls.map(({ authorizationUrl }) => Object.fromEntries(new URL(authorizationUrl).searchParams));
  expect(first).toEqual({
    client_id: CLIENT_ID,
    response_type: 'code',
    redirect_uri: `${request.redirectUri}/test`,
    scope: 'openid profile email',
    code_challenge_method: 'S256',
    code_challenge: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    state: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    nonce: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
  });
  for (const name of ['state', 'nonce', 'code_challenge']) expect(second?.[name], name).not.toBe(first?.[name]);
});

test('nothing of a flow stands in the database, in Redis or in the cookie as it is', async () => {
  const back = await comeBack(instance, issuer);
  await instance.oidc.finishOidc(back);
  const tables = ['account', 'session', 'oidc_link', 'oidc_used_flow'];
  const rows = await Promise.all(tables.map(async (table) => (await identity.db.query(`select * from ${table}`)).rows));
  const keys = await identity.redis.keys('*');
  const stored = JSON.stringify(rows) + JSON.stringify(keys) + Buffer.from(back.flow ?? '', 'base64url').toString('latin1');
  expect(stored).toContain(
    JSON.stringify([
      ...createHash('sha256')
        .update(back.state ?? '')
        .digest(),
    ]).slice(1, -1),
  );
  for (const secret of [back.code, back.state, back.flow, CLIENT_SECRET]) expect(stored).not.toContain(secret);
});

test.each([
  ['nothing', ''],
  ['a NUL', '\0'],
  ['half a surrogate pair', '\ud800'],
  ['a prototype', '__proto__'],
  ['SQL', "' or 1=1 --"],
  ['100,000 characters', 'x'.repeat(100_000)],
  ['a URL of no kind', 'javascript:alert(1)'],
])('%s in any field is refused by a rule', async (_what, text) => {
  const back = await comeBack(instance, issuer);
  const redirectUri = 'https://latchkey.test/';
  const refused = [
    instance.oidc.startOidc({ issuer: text, redirectUri }),
    instance.oidc.startOidc({ issuer: 'test', redirectUri, linkAccountId: text }),
    instance.oidc.finishOidc({ ...back, flow: text }),
    instance.oidc.finishOidc({ ...back, state: text }),
    instance.oidc.finishOidc({ ...back, redirectUri: text }),
    instance.oidc.completeOidc({ pending: text, code: text, previousSessionToken: text }),
  ];
  for (const { kind } of await Promise.all(refused.map(refusalOf))) expect(['unauthenticated', 'not_found']).toContain(kind);
  const taken = [
    finishAt(instance, issuer, { code: text }),
    finishAt(instance, issuer, { iss: text }),
    finishAt(instance, issuer, { error: text }),
    finishAt(instance, issuer, { sessionToken: text }),
  ];
  for (const outcome of await Promise.all(taken.map(outcomeOf))) expect(['done', 'oidc_refused']).toContain(outcome);
});
