import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signUp } from '../testing/caller.ts';
import { outcome } from '../testing/files.ts';
import { cookieLines, OidcBrowser, someoneAt } from '../testing/oidc-browser.ts';
import { type OidcIssuer, PUBLIC_URL, type Somebody, startOidcIssuer } from '../testing/oidc-issuer.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';
import { signUpGuarded } from '../testing/two-factor.ts';

let issuer: OidcIssuer;
let instance: OwnInstance;
beforeAll(async () => {
  issuer = await startOidcIssuer();
  instance = await startOwnInstance({ env: issuer.env });
});
afterAll(async () => {
  await instance.stop();
  await issuer.stop();
});

const browser = (session?: string) => new OidcBrowser(instance.api, issuer, session);
const someone = (claims: Somebody = {}) => someoneAt(issuer, claims);

describe('signing in at an issuer', () => {
  it('opens a session of a new account, and the next time another session of the same', async () => {
    const login = someone();
    const first = browser();
    const answer = await first.signIn(login);
    expect(outcome(answer)).toBe('200');
    expect(answer.data.account).toMatchObject({ username: login, email: `${login}@example.com`, avatarUrl: null });
    expect(cookieLines(answer.headers, 'session')).toEqual([
      expect.stringMatching(/^session=[\w-]{43}; Max-Age=25\d{5}; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ]);
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    expect((await first.session()).data).toEqual(answer.data);

    const second = browser();
    expect((await second.signIn(login)).data.account).toEqual(answer.data.account);
    expect(second.jar.get('session')).not.toBe(first.jar.get('session'));
    expect((await first.session()).status).toBe(200);
  });

  it('sends the browser to the issuer with a cookie that is only for the way back', async () => {
    const started = await browser().start();
    expect([started.status, await started.text()]).toEqual([302, '']);
    const url = new URL(started.headers.get('location') ?? '');
    expect(url.origin).toBe(issuer.url);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      redirect_uri: `${PUBLIC_URL}/api/v1/auth/oidc/callback`,
      code_challenge_method: 'S256',
      response_type: 'code',
    });
    expect(cookieLines(started.headers, 'oidc_flow')).toEqual([
      expect.stringMatching(
        /^oidc_flow=[\w-]{100,2000}; Max-Age=(600|599); Path=\/api\/v1\/auth\/oidc; HttpOnly; Secure; SameSite=Lax$/,
      ),
    ]);
    expect(started.headers.get('cache-control')).toBe('no-store');
  });

  it('ends the session that the browser had, so that a planted one is worth nothing, and makes no account beside it', async () => {
    const attacker = await signUp(instance.api);
    const login = someone();
    const victim = browser(attacker.cookie);
    const refused = await victim.signIn(login);
    expect([outcome(refused), refused.message]).toEqual(['409 account_exists', expect.stringContaining('signed in')]);
    expect(outcome(await attacker.session.get('/api/v1/auth/session'))).toBe('200');
    expect(outcome(await browser().signIn(login))).toBe('200');
    expect(outcome(await victim.signIn(login))).toBe('200');
    expect(outcome(await attacker.session.get('/api/v1/auth/session'))).toBe('401 unauth');
  });

  it('is refused to whoever turns back at the issuer', async () => {
    const other = browser();
    const query = await other.visit(someone(), { turnBack: true });
    expect(new URLSearchParams(query).get('error')).toBe('access_denied');
    expect(outcome(await other.comeBack(query))).toBe('401 unauth');
    expect(cookieLines((await other.comeBack(query)).headers, 'session')).toEqual([]);
  });

  it('ends once, also for a browser that kept its cookie', async () => {
    const other = browser();
    const query = await other.visit(someone());
    const flow = other.jar.get('oidc_flow') ?? '';
    expect(outcome(await other.comeBack(query))).toBe('200');
    expect(other.jar.get('oidc_flow')).toBeUndefined();
    expect(outcome(await other.comeBack(query))).toBe('401 unauth');
    other.jar.set('oidc_flow', flow);
    expect(outcome(await other.comeBack(query))).toBe('401 unauth');
  });

  it('ends in no other browser than it began in', async () => {
    const [one, other] = [browser(), browser()];
    const query = await one.visit(someone());
    expect(outcome(await other.comeBack(query))).toBe('401 unauth');
    await other.start();
    expect(outcome(await other.comeBack(query))).toBe('401 unauth');
    expect(outcome(await one.comeBack(query))).toBe('200');
  });

  it.each<[string, (query: URLSearchParams) => void]>([
    ['another issuer', (query) => query.set('iss', 'https://another.test')],
    ['no issuer', (query) => query.delete('iss')],
    ['another code', (query) => query.set('code', 'another')],
    ['no code', (query) => query.delete('code')],
    ['another state', (query) => query.set('state', 'another')],
    ['no state', (query) => query.delete('state')],
    ['an error', (query) => query.set('error', 'server_error')],
  ])('is refused with %s', async (_what, change) => {
    const other = browser();
    const query = new URLSearchParams(await other.visit(someone()));
    change(query);
    const answer = await other.comeBack(query.toString());
    expect(outcome(answer)).toBe('401 unauth');
    expect(cookieLines(answer.headers, 'session')).toEqual([]);
  });

  it.each([
    ['a parameter twice', 'state=a&state=b'],
    ['a huge parameter', `code=${'a'.repeat(5_000)}`],
    ['a NUL', 'code=%00'],
  ])('answers %s as any malformed request', async (_what, query) => {
    expect(outcome(await browser().comeBack(query))).toBe('400 VALIDATION_ERROR');
  });

  it.each(['', 'state=__proto__&code=constructor', 'error=%3Cscript%3E', '%5B%5D=1&code[]=2'])(
    'answers %j with a refusal',
    async (query) => {
      expect(outcome(await browser().comeBack(query))).toBe('401 unauth');
    },
  );

  it.each([
    ['cross-site', undefined, '403 csrf_invalid'],
    ['cross-site', 'https://evil.test/', '403 csrf_invalid'],
    ['cross-site', `https://evil.test/?${PUBLIC_URL}`, '403 csrf_invalid'],
    ['cross-site', 'nonsense', '403 csrf_invalid'],
    ['cross-site', `${PUBLIC_URL}/`, '302'],
    ['same-site', undefined, '302'],
    ['same-origin', undefined, '302'],
    ['none', undefined, '302'],
  ])('is begun by no link of another site: %s from %s', async (site, referer, expected) => {
    const headers = { 'sec-fetch-site': site, ...(referer !== undefined && { referer }) };
    const url = `${instance.api.baseUrl}/api/v1/auth/oidc/start?issuer=corp`;
    const response = await fetch(url, { redirect: 'manual', headers });
    const body = await response.text();
    expect(`${response.status} ${body && JSON.parse(body).code}`.trim()).toBe(expected);
    expect(cookieLines(response.headers, 'oidc_flow')).toHaveLength(expected === '302' ? 1 : 0);
  });

  it('is to be at an issuer that is configured', async () => {
    const { api } = instance;
    for (const name of ['nobody', 'CORP', '__proto__']) {
      expect(outcome(await api.get('/api/v1/auth/oidc/start', { issuer: name })), name).toBe('404 not_found');
    }
    expect(outcome(await api.get('/api/v1/auth/oidc/start'))).toBe('400 VALIDATION_ERROR');
    expect(outcome(await api.get('/api/v1/auth/oidc/start', 'issuer=corp&issuer=corp'))).toBe('400 VALIDATION_ERROR');
  });

  it('never signs in to an account because of its email, and says what to do', async () => {
    const owner = await signUp(instance.api);
    const answer = await browser().signIn(someone({ email: owner.email.toUpperCase() }));
    expect(outcome(answer)).toBe('409 account_exists');
    expect(answer.message).toContain('link');
    expect(cookieLines(answer.headers, 'session')).toEqual([]);
  });

  it('makes no account of whoever has no verified email', async () => {
    expect(outcome(await browser().signIn(someone({ email_verified: false })))).toBe('403 email_not_verified');
  });

  it('gives the account the picture that the issuer names, which nobody fetches', async () => {
    let connections = 0;
    const pictures = createServer((socket) => {
      connections += 1;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(pictures, 'listening');
    const picture = `https://127.0.0.1:${(pictures.address() as AddressInfo).port}/picture.png`;
    const login = someone({ picture });
    const other = browser();
    expect((await other.signIn(login)).data.account.avatarUrl).toBe(picture);
    expect((await other.session()).data.account.avatarUrl).toBe(picture);
    issuer.know(login, { picture: `${picture}?2` });
    expect((await browser().signIn(login)).data.account.avatarUrl).toBe(`${picture}?2`);
    issuer.know(login, { picture: 'http://127.0.0.1/in-the-clear.png' });
    expect((await browser().signIn(login)).data.account.avatarUrl).toBe(`${picture}?2`);
    pictures.close();
    expect(connections).toBe(0);
  });
});

describe('an account with a second factor', () => {
  /** A browser that was sent back and asked for a code. */
  async function askedForCode() {
    const guarded = await signUpGuarded(instance.api);
    const login = someone();
    const linking = browser(guarded.cookie);
    const { data } = await linking.link(guarded.csrfToken, { password: guarded.password, code: guarded.nextCode() });
    expect(outcome(await linking.comeBack(await linking.visit(login, { url: data.url })))).toBe('200');
    const other = browser();
    const answer = await other.signIn(login);
    return { guarded, other, answer };
  }

  it('is signed in to with a code, once', async () => {
    const { guarded, other, answer } = await askedForCode();
    expect(outcome(answer)).toBe('401 two_factor_required');
    expect(cookieLines(answer.headers, 'session')).toEqual([]);
    expect(outcome(await other.session())).toBe('401 unauth');
    expect(outcome(await other.complete(guarded.wrongCode()))).toBe('400 bad_request');
    const pending = other.jar.get('oidc_pending') ?? '';
    const [recoveryCode = ''] = guarded.recoveryCodes;
    const completed = await other.complete(recoveryCode);
    expect(outcome(completed)).toBe('200');
    expect((await other.session()).data.account).toMatchObject({ id: guarded.accountId, twoFactorEnabled: true });
    expect(other.jar.get('oidc_pending')).toBeUndefined();
    other.jar.set('oidc_pending', pending);
    expect(outcome(await other.complete(recoveryCode))).toBe('400 bad_request');
    expect(outcome(await other.complete(guarded.usedCode))).toBe('400 bad_request');
  });

  it('is not signed in to by a code alone', async () => {
    const { guarded } = await askedForCode();
    expect(outcome(await browser().complete(guarded.recoveryCodes[0] ?? ''))).toBe('401 unauth');
    const forged = browser();
    forged.jar.set('oidc_pending', 'nonsense');
    expect(outcome(await forged.complete(guarded.recoveryCodes[0] ?? ''))).toBe('401 unauth');
  });

  it('is not signed in to by a page of somebody else', async () => {
    const { guarded, other } = await askedForCode();
    const cookie = other.jar.header('/api/v1/auth/oidc/complete');
    const api = instance.api.with({ cookie, origin: 'https://evil.test' });
    const answer = await api.post('/api/v1/auth/oidc/complete', { code: guarded.recoveryCodes[0] });
    expect(outcome(answer)).toBe('403 csrf_invalid');
  });
});
