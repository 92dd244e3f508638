import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { MINUTE_MS, outcomeOf } from '../testing/identity.ts';
import { CLIENT_ID, REDIRECT_URI, startTestIssuer, type TestIssuer, type TestToken } from '../testing/issuer.ts';
import { comeBack, finishAt, openTestOidc, type Return, someone, stateOf } from '../testing/oidc-flow.ts';

const { issuer, identity } = await openTestOidc();
const other = await startTestIssuer();
const instance = identity.connect({ env: { ...other.env('other'), ...issuer.env(), OIDC_ISSUERS: 'test, other' } });
afterAll(() => other.stop());
beforeEach(() => {
  other.reset();
  [issuer.claims, other.claims] = [someone(), someone()];
});

const state = () => stateOf(identity);
const finish = (back: Return) => instance.oidc.finishOidc(back);
const codesSent = () => [...issuer.asked, ...other.asked].filter((path) => path === '/token').length;

describe('a flow', () => {
  test('is finished once, also by several instances and where the issuer would take the code again', async () => {
    issuer.reusesCodes = true;
    const second = identity.connect({ env: { ...other.env('other'), ...issuer.env(), OIDC_ISSUERS: 'test, other' } });
    const back = await comeBack(instance, issuer);
    const sent = codesSent();
    const tries = Array.from({ length: 8 }, (_, i) => outcomeOf((i % 2 ? second : instance).oidc.finishOidc(back)));
    expect((await Promise.all(tries)).sort()).toEqual(['done', ...Array(7).fill('oidc_flow_invalid')]);
    expect(codesSent()).toBe(sent + 1);
  });

  test('expires after 10 minutes', async () => {
    const [soon, late] = [await comeBack(instance, issuer), await comeBack(instance, issuer)];
    identity.clock.advance(10 * MINUTE_MS - 1);
    expect(await outcomeOf(finish(soon))).toBe('done');
    identity.clock.advance(1);
    expect(await outcomeOf(finish(late))).toBe('oidc_flow_invalid');
  });

  test.each<[string, (back: Return, another: Return) => Return]>([
    ['without its cookie', (back) => ({ ...back, flow: '' })],
    ['with the cookie of another flow', (back, { flow }) => ({ ...back, flow: flow ?? '' })],
    ['with a changed cookie', (back) => ({ ...back, flow: `${back.flow?.slice(0, -8)}AAAAAAAA` })],
    ['with a huge cookie', (back) => ({ ...back, flow: 'A'.repeat(100_000) })],
    ['without a state', ({ state: _, ...back }) => back],
    ['with the state of another flow', (back, { state }) => ({ ...back, state: state ?? '' })],
    ['at the redirect URI of another issuer', (back) => ({ ...back, redirectUri: `${REDIRECT_URI}/other` })],
    ['at the redirect URI of a single issuer', (back) => ({ ...back, redirectUri: REDIRECT_URI })],
  ])('that comes back %s is rejected, sends no code and stays valid', async (_what, change) => {
    const [back, another] = [await comeBack(instance, issuer), await comeBack(instance, issuer)];
    const [before, sent] = [await state(), codesSent()];
    const error = await refusalOf(finish(change(back, another)));
    expect(error).toMatchObject({ reason: 'oidc_flow_invalid', kind: 'unauthenticated', code: 'unauth' });
    expect(await state()).toEqual(before);
    expect(codesSent()).toBe(sent);
    expect(await outcomeOf(finish(back))).toBe('done');
  });

  test.each<[string, Return]>([
    ['that the issuer rejected', { error: 'access_denied' }],
    ['with both a code and an error', { error: 'server_error' }],
    ['without a code', { code: '' }],
    ['with an unknown code', { code: 'a-code' }],
    ['without the issuer that announced to name itself', { iss: '' }],
    ['with another issuer', { iss: 'https://another.test' }],
  ])('%s is rejected', async (_what, change) => {
    const before = await state();
    const error = await refusalOf(finishAt(instance, issuer, change));
    expect(error).toMatchObject({ reason: 'oidc_refused', kind: 'unauthenticated', code: 'unauth' });
    expect(await state()).toEqual(before);
  });

  test('of an issuer that is no longer configured is rejected', async () => {
    const unset = Object.fromEntries(Object.keys(issuer.env()).map((name) => [name, '']));
    const without = identity.connect({ env: { ...unset, ...other.env('other') } });
    expect(await outcomeOf(without.oidc.finishOidc(await comeBack(instance, issuer)))).toBe('oidc_flow_invalid');
    const request = { issuer: 'test', redirectUri: REDIRECT_URI };
    const error = { reason: 'oidc_issuer_not_found', kind: 'not_found' };
    expect(await refusalOf(without.oidc.startOidc(request))).toMatchObject(error);
    expect(await outcomeOf(instance.oidc.startOidc({ ...request, redirectUri: 'nowhere' }))).toBe('oidc_request_invalid');
  });

  test('starts with PKCE by S256, a new nonce and a new state', async () => {
    const request = { issuer: 'test', redirectUri: REDIRECT_URI };
    const urls = await Promise.all([instance.oidc.startOidc(request), identity.oidc.startOidc(request)]);
    const [first, second] = urls.map(({ authorizationUrl }) => Object.fromEntries(new URL(authorizationUrl).searchParams));
    const random = expect.stringMatching(/^[A-Za-z0-9_-]{43}$/);
    const constant = {
      client_id: CLIENT_ID,
      response_type: 'code',
      scope: 'openid profile email',
      code_challenge_method: 'S256',
    };
    const secrets = { code_challenge: random, state: random, nonce: random };
    expect(first).toEqual({ ...constant, ...secrets, redirect_uri: `${REDIRECT_URI}/test` });
    // The only issuer shares the common redirect URI.
    expect(second?.redirect_uri).toBe(REDIRECT_URI);
    for (const name of Object.keys(secrets)) expect(second?.[name], name).not.toBe(first?.[name]);
  });
});

/** Mix-up of issuers (RFC 9700, 4.4), whether or not their responses identify them. */
describe.each([[{}], [{ authorization_response_iss_parameter_supported: false }]])('with metadata %j', (metadata) => {
  const start = (name: string) => instance.oidc.startOidc({ issuer: name, redirectUri: REDIRECT_URI });
  const iss = 'authorization_response_iss_parameter_supported' in metadata ? { iss: '' } : {};
  beforeEach(() => {
    for (const one of [issuer, other]) one.metadata = metadata;
  });

  test('an issuer that forwards its visitor to another one gets no code', async () => {
    const [mine, victim] = [await start('test'), await start('other')];
    const forwarded = new URL(mine.authorizationUrl);
    forwarded.searchParams.set('state', new URL(victim.authorizationUrl).searchParams.get('state') ?? '');
    const sent = codesSent();
    const back = { ...issuer.authorize(forwarded.href), ...iss, flow: victim.flow, redirectUri: `${REDIRECT_URI}/test` };
    expect(await outcomeOf(finish(back))).toBe('oidc_flow_invalid');
    expect(codesSent()).toBe(sent);
  });

  test('an issuer cannot use a code that another one sent to its redirect URI', async () => {
    const mine = await start('test');
    const forwarded = new URL(mine.authorizationUrl);
    forwarded.searchParams.set('redirect_uri', `${REDIRECT_URI}/other`);
    const response = { ...issuer.authorize(forwarded.href), iss: issuer.url };
    expect(await outcomeOf(finish({ ...response, flow: mine.flow, redirectUri: `${REDIRECT_URI}/test` }))).toBe('oidc_refused');
  });

  test('the response of one issuer does not finish the flow of another', async () => {
    const [mine, theirs] = [await comeBack(instance, issuer), await comeBack(instance, other, { issuerName: 'other' })];
    const mixed = { ...theirs, ...iss, flow: mine.flow ?? '', state: mine.state ?? '' };
    expect(await outcomeOf(finish(mixed))).toBe('oidc_flow_invalid');
    expect(await outcomeOf(finish({ ...mixed, redirectUri: mine.redirectUri ?? '' }))).toBe('oidc_refused');
  });
});

const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
const withClaims = (claims: object) => (token: TestToken) => ({ ...token, claims: { ...token.claims, ...claims } });
const withHeader = (header: object) => (token: TestToken) => ({ ...token, header: { ...token.header, ...header } });
const nowS = () => Math.floor(Date.now() / 1000);

describe('an ID token', () => {
  test.each<[string, TestIssuer['forge']]>([
    ['for another audience', withClaims({ aud: 'another-client' })],
    ['authorized for another party', withClaims({ aud: [CLIENT_ID, 'another-client'], azp: 'another-client' })],
    ['of another issuer', withClaims({ iss: 'https://another.test' })],
    ['with another nonce', withClaims({ nonce: 'another' })],
    ['without a nonce', withClaims({ nonce: undefined })],
    ['that is expired', withClaims({ exp: nowS() - 3_600 })],
    ['without an expiry', withClaims({ exp: undefined })],
    ['that is not valid yet', withClaims({ nbf: nowS() + 3_600 })],
    ['issued more than a minute ahead', (token) => withClaims({ iat: nowS() + 90 })(token)],
    ['with an empty subject', withClaims({ sub: '' })],
    ['with a NUL in its subject', withClaims({ sub: 'a\0b' })],
    ['with a subject of 256 characters', withClaims({ sub: 's'.repeat(256) })],
    ['signed with another key', (token) => ({ ...token, key: stranger })],
    ['without a signature', withHeader({ alg: 'none' })],
    ['signed with the client secret', withHeader({ alg: 'HS256' })],
    ['with an unknown critical header', withHeader({ crit: ['exp'] })],
  ])('%s is rejected', async (_what, forge) => {
    issuer.forge = forge;
    const before = await state();
    const error = await refusalOf(finishAt(instance, issuer));
    expect(error).toMatchObject({ reason: 'oidc_refused', kind: 'unauthenticated', code: 'unauth' });
    expect(await state()).toEqual(before);
  });

  test('with a subject of 255 characters, expired for 20 seconds and issued 50 seconds ahead, is accepted', async () => {
    issuer.forge = withClaims({ sub: 's'.repeat(255), exp: nowS() - 20, iat: nowS() + 50 });
    expect(await outcomeOf(finishAt(instance, issuer))).toBe('done');
  });

  test('without a signature is rejected also where the issuer supports that', async () => {
    issuer.metadata = { id_token_signing_alg_values_supported: ['none', 'HS256'] };
    issuer.forge = withHeader({ alg: 'none' });
    expect(await outcomeOf(finishAt(identity.connect({ env: issuer.env() }), issuer))).toBe('oidc_refused');
  });
});

test.each(['', '\0', '\ud800', '__proto__', 'x'.repeat(100_000), randomUUID()])(
  'hostile text in any field is rejected (%#)',
  async (text) => {
    const back = await comeBack(instance, issuer);
    const rejected = [
      instance.oidc.startOidc({ issuer: text, redirectUri: REDIRECT_URI }),
      instance.oidc.startOidc({ issuer: 'test', redirectUri: REDIRECT_URI, linkAccountId: text }),
      finish({ ...back, flow: text }),
      finish({ ...back, state: text }),
      finish({ ...back, redirectUri: text }),
      instance.oidc.completeOidc({ pending: text, code: text, previousSessionToken: text }),
    ];
    for (const { kind } of await Promise.all(rejected.map(refusalOf))) expect(['unauthenticated', 'not_found']).toContain(kind);
    const others = ['code', 'iss', 'error', 'sessionToken'].map((field) =>
      outcomeOf(finishAt(instance, issuer, { [field]: text })),
    );
    for (const outcome of await Promise.all(others)) expect(['done', 'oidc_refused']).toContain(outcome);
  },
);
