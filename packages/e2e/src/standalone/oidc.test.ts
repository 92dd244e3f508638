import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PASSWORD, signUp } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { cookieLines, createUser, OidcBrowser } from '../client/oidc-browser.ts';
import { exchangeForm, postToken } from '../client/token.ts';
import { signUpGuarded } from '../client/two-factor.ts';
import { type OidcIssuer, PUBLIC_URL, startOidcIssuer, type UserClaims } from '../fakes/oidc-issuer.ts';
import { type DedicatedInstance, startDedicatedInstance } from '../instance/dedicated-instance.ts';

const OIDC = '/api/v1/auth/oidc';
let issuer: OidcIssuer;
let instance: DedicatedInstance;
beforeAll(async () => {
  issuer = await startOidcIssuer();
  const env = { OIDC_ISSUERS: 'corp,away', OIDC_AWAY_ISSUER: 'http://127.0.0.1:1', OIDC_AWAY_CLIENT_ID: 'a' };
  instance = await startDedicatedInstance({ env: { ...issuer.env, ...env } });
});
afterAll(async () => {
  await instance.stop();
  await issuer.stop();
});

const browser = (session?: string) => new OidcBrowser(instance.api, issuer, session);
const someone = (claims: UserClaims = {}) => createUser(issuer, claims);

it('a token that the issuer gave a job is exchanged for a key', async () => {
  const { session } = await signUp(instance.api);
  const [name, audience] = ['Job of corp', 'https://latchkey.test'];
  const rights = { scopes: ['account:read'], allApplications: true, lifetimeSeconds: 60 };
  const trusted = { name, issuer: issuer.url, audience, claims: { client_id: 'job' }, ...rights };
  expect(outcome(await session.post('/api/v1/panel/trusted-issuers', trusted))).toBe('200');
  const { baseUrl } = instance.api;
  const { json } = await postToken(baseUrl, exchangeForm(await issuer.tokenOfJob(audience), { audience }));
  const job = instance.api.with({ authorization: `Bearer ${json.access_token}` });
  expect(outcome(await job.get('/api/v1/panel/get-account-limits'))).toBe('200');
  const other = await postToken(baseUrl, exchangeForm(await issuer.tokenOfJob('https://other.test')));
  expect([other.status, other.json.error]).toEqual([400, 'invalid_request']);
});

describe('signing in at an issuer', () => {
  it('opens a session of a new account with the picture that the issuer names, and then another session of the same', async () => {
    const picture = 'https://pictures.test/picture.png';
    const login = someone({ picture });
    const first = browser();
    const answer = await first.signIn(login);
    expect(answer.data.account).toMatchObject({ username: login, email: `${login}@example.com`, avatarUrl: picture });
    expect(cookieLines(answer.headers, 'session')).toEqual([
      expect.stringMatching(/^session=[\w-]{43}; Max-Age=25\d{5}; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ]);
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    const second = browser();
    expect((await second.signIn(login)).data.account).toEqual(answer.data.account);
    expect(second.jar.get('session')).not.toBe(first.jar.get('session'));
    expect((await first.session()).data).toEqual(answer.data);
  });

  it('sends the browser to the issuer with a cookie for the way back alone', async () => {
    const started = await browser().start();
    expect([started.status, await started.text(), started.headers.get('cache-control')]).toEqual([302, '', 'no-store']);
    const url = new URL(started.headers.get('location') ?? '');
    const parameters = {
      redirect_uri: `${PUBLIC_URL}${OIDC}/callback/corp`,
      code_challenge_method: 'S256',
      response_type: 'code',
    };
    expect([url.origin, Object.fromEntries(url.searchParams)]).toEqual([issuer.url, expect.objectContaining(parameters)]);
    const cookie = /^oidc_flow=[\w-]{100,2000}; Max-Age=(600|599); Path=\/api\/v1\/auth\/oidc; HttpOnly; Secure; SameSite=Lax$/;
    expect(cookieLines(started.headers, 'oidc_flow')).toEqual([expect.stringMatching(cookie)]);
  });

  it('ends the previous session of the browser, so that a planted one is useless', async () => {
    const attacker = await signUp(instance.api);
    const login = someone();
    const victim = browser(attacker.cookie);
    const refused = await victim.signIn(login);
    expect([outcome(refused), refused.message]).toEqual(['409 account_exists', expect.stringContaining('signed in')]);
    expect(outcome(await attacker.session.get('/api/v1/auth/session'))).toBe('200');
    expect([outcome(await browser().signIn(login)), outcome(await victim.signIn(login))]).toEqual(['200', '200']);
    expect(outcome(await attacker.session.get('/api/v1/auth/session'))).toBe('401 unauth');
  });

  it('ends in the browser that it began in, and not where the user turned back', async () => {
    const [one, other] = [browser(), browser()];
    const query = await one.visit(someone());
    expect(outcome(await other.comeBack(query))).toBe('401 unauth');
    await other.start();
    expect(outcome(await other.comeBack(query))).toBe('401 unauth');
    expect(outcome(await one.comeBack(query))).toBe('200');
    for (const malformed of ['state=a&state=b', `code=${'a'.repeat(5_000)}`, 'code=%00'])
      expect(outcome(await other.comeBack(malformed))).toBe('400 VALIDATION_ERROR');
    const turnedBack = await other.visit(someone(), { turnBack: true });
    expect(new URLSearchParams(turnedBack).get('error')).toBe('access_denied');
    expect(outcome(await other.comeBack(turnedBack))).toBe('401 unauth');
  });

  it.each([
    ['cross-site', 'https://evil.test/', '403 csrf_invalid'],
    ['cross-site', `https://evil.test/?${PUBLIC_URL}`, '403 csrf_invalid'],
    ['cross-site', `${PUBLIC_URL}/`, '302'],
    ['none', '', '302'],
  ])('is not begun by a link of another site: %s from %j', async (site, referer, expected) => {
    const headers = { 'sec-fetch-site': site, ...(referer && { referer }) };
    const response = await fetch(`${instance.baseUrl}${OIDC}/start?issuer=corp`, { redirect: 'manual', headers });
    const body = await response.text();
    expect(`${response.status} ${body && JSON.parse(body).code}`.trim()).toBe(expected);
    expect(cookieLines(response.headers, 'oidc_flow')).toHaveLength(expected === '302' ? 1 : 0);
  });

  it('at an issuer that is down is answered with 503, and others are used', async () => {
    const answer = await instance.api.get(`${OIDC}/start`, { issuer: 'away' }, { mayFail: true });
    expect([outcome(answer), answer.headers.get('retry-after')]).toEqual(['503 INTERNAL_ERROR', expect.stringMatching(/^\d+$/)]);
    for (const name of ['unknown', 'CORP', '__proto__'])
      expect(outcome(await instance.api.get(`${OIDC}/start`, { issuer: name })), name).toBe('404 not_found');
    expect(outcome(await browser().signIn(someone()))).toBe('200');
  });
});

describe('an account with a second factor', () => {
  it('is signed in to with a code, once, and not by a code alone or a page of another origin', async () => {
    const guarded = await signUpGuarded(instance.api);
    const login = someone();
    const linking = browser(guarded.cookie);
    const { data } = await linking.link(guarded.csrfToken, { password: guarded.password, code: guarded.nextCode() });
    expect(outcome(await linking.comeBack(await linking.visit(login, { url: data.url })))).toBe('200');
    const other = browser();
    const answer = await other.signIn(login);
    expect([outcome(answer), cookieLines(answer.headers, 'session')]).toEqual(['401 two_factor_required', []]);
    expect(outcome(await other.complete(guarded.wrongCode()))).toBe('400 bad_request');
    const [code = ''] = guarded.recoveryCodes;
    const foreign = instance.api.with({ cookie: other.jar.header(`${OIDC}/complete`), origin: 'https://evil.test' });
    expect(outcome(await foreign.post(`${OIDC}/complete`, { code }))).toBe('403 csrf_invalid');
    expect(outcome(await other.complete(code))).toBe('200');
    expect((await other.session()).data.account).toMatchObject({ id: guarded.accountId, twoFactorEnabled: true });
    expect(other.jar.get('oidc_pending')).toBeUndefined();
  });
});

describe('linking an account', () => {
  it('lets its owner sign in at the issuer, whatever email they have there, until it is unlinked with the password', async () => {
    const owner = await signUp(instance.api);
    const login = someone({ email: 'elsewhere@example.com', email_verified: false });
    const linking = browser(owner.cookie);
    const { data } = await linking.link(owner.csrfToken);
    const answer = await linking.comeBack(await linking.visit(login, { url: data.url }));
    expect([answer.message, cookieLines(answer.headers, 'session')]).toEqual(['Linked.', []]);
    expect(answer.data).toMatchObject({ account: { id: owner.accountId }, csrfToken: owner.csrfToken });
    expect((await browser().signIn(login)).data.account.id).toBe(owner.accountId);
    const links = async () => (await owner.session.get(`${OIDC}/links`)).data;
    expect(await links()).toEqual([{ issuer: issuer.url, name: 'corp', subject: login, createdAt: expect.any(String) }]);
    expect((await owner.session.post(`${OIDC}/unlink`, { issuer: 'corp', password: PASSWORD })).data).toEqual({ removed: 1 });
    expect(await links()).toEqual([]);
  });
});
