import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PASSWORD, signUp } from '../testing/caller.ts';
import { outcome } from '../testing/files.ts';
import { cookieLines, OidcBrowser, someoneAt } from '../testing/oidc-browser.ts';
import { type OidcIssuer, type Somebody, startOidcIssuer } from '../testing/oidc-issuer.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';
import { signUpGuarded } from '../testing/two-factor.ts';

const OIDC = '/api/v1/auth/oidc';

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

describe('linking an account', () => {
  it('makes it one that its owner signs in to at the issuer, whatever email they have there', async () => {
    const owner = await signUp(instance.api);
    const login = someone({ email: 'elsewhere@example.com', email_verified: false });
    const linking = browser(owner.cookie);
    const { data } = await linking.link(owner.csrfToken);
    const answer = await linking.comeBack(await linking.visit(login, { url: data.url }));
    expect(answer.message).toBe('Linked.');
    expect(answer.data).toMatchObject({ account: { id: owner.accountId }, csrfToken: owner.csrfToken });
    expect(cookieLines(answer.headers, 'session')).toEqual([]);
    expect((await browser().signIn(login)).data.account.id).toBe(owner.accountId);
  });

  it('needs a session and its CSRF token', async () => {
    const owner = await signUp(instance.api);
    const link = (headers: Record<string, string>) => instance.api.with(headers).post(`${OIDC}/link`, { issuer: 'corp' });
    expect(outcome(await link({}))).toBe('401 unauth');
    expect(outcome(await link({ cookie: owner.cookie }))).toBe('403 csrf_invalid');
    expect(outcome(await link({ cookie: owner.cookie, 'x-csrf-token': 'wrong' }))).toBe('403 csrf_invalid');
    expect(outcome(await owner.session.post(`${OIDC}/link`, { issuer: 'nobody' }))).toBe('404 not_found');
  });

  it('needs the password too', async () => {
    const owner = await signUp(instance.api);
    const linking = browser(owner.cookie);
    for (const proof of [{}, { password: 'wrong password' }]) {
      expect(outcome(await linking.link(owner.csrfToken, proof))).toBe('400 bad_request');
    }
    expect(linking.jar.get('oidc_flow')).toBeUndefined();
  });

  it('is nothing in a browser that another account is signed in to, or none', async () => {
    const [owner, other] = [await signUp(instance.api), await signUp(instance.api)];
    const login = someone();
    for (const session of [other.cookie, 'session=nonsense']) {
      const linking = browser(owner.cookie);
      const { data } = await linking.link(owner.csrfToken);
      const query = await linking.visit(login, { url: data.url });
      linking.jar.set('session', session.slice('session='.length));
      expect(outcome(await linking.comeBack(query)), session).toBe('401 unauth');
    }
    const { account } = (await browser().signIn(login)).data;
    expect([owner.accountId, other.accountId]).not.toContain(account.id);
  });

  it('is refused where whoever signs in has an account', async () => {
    const login = someone();
    const { account } = (await browser().signIn(login)).data;
    const owner = await signUp(instance.api);
    const linking = browser(owner.cookie);
    const { data } = await linking.link(owner.csrfToken);
    expect(outcome(await linking.comeBack(await linking.visit(login, { url: data.url })))).toBe('409 account_exists');
    expect((await browser().signIn(login)).data.account.id).toBe(account.id);
  });
});

describe('a link', () => {
  /** An account and somebody whom it is linked to. */
  async function linked() {
    const owner = await signUp(instance.api);
    const login = someone();
    const linking = browser(owner.cookie);
    const { data } = await linking.link(owner.csrfToken);
    await linking.comeBack(await linking.visit(login, { url: data.url }));
    return { owner, login };
  }

  it('is shown and removed', async () => {
    const { owner, login } = await linked();
    const links = async () => (await owner.session.get(`${OIDC}/links`)).data;
    const createdAt = expect.stringMatching(/^\d{4}-.+Z$/);
    expect(await links()).toEqual([{ issuer: issuer.url, name: 'corp', subject: login, createdAt }]);
    const unlink = () => owner.session.post(`${OIDC}/unlink`, { issuer: 'corp', password: PASSWORD });
    expect((await unlink()).data).toEqual({ removed: 1 });
    expect(outcome(await unlink())).toBe('404 not_found');
    expect(await links()).toEqual([]);
    expect((await browser().signIn(login)).data.account.id).not.toBe(owner.accountId);
  });

  it('is not removed with a session alone', async () => {
    const { owner, login } = await linked();
    for (const proof of [{}, { password: 'wrong password' }, { code: '123456' }]) {
      expect(outcome(await owner.session.post(`${OIDC}/unlink`, { issuer: 'corp', ...proof }))).toBe('400 bad_request');
    }
    expect((await browser().signIn(login)).data.account.id).toBe(owner.accountId);
  });

  it('is removed with a code too where there is a second factor', async () => {
    const guarded = await signUpGuarded(instance.api);
    const linking = browser(guarded.cookie);
    const { data } = await linking.link(guarded.csrfToken, { password: guarded.password, code: guarded.nextCode() });
    await linking.comeBack(await linking.visit(someone(), { url: data.url }));
    const unlink = (proof: object) => guarded.session.post(`${OIDC}/unlink`, { issuer: 'corp', ...proof });
    const [code] = guarded.recoveryCodes;
    expect(outcome(await unlink({ password: guarded.password }))).toBe('401 two_factor_required');
    expect(outcome(await unlink({ password: 'wrong password', code }))).toBe('400 bad_request');
    expect(outcome(await unlink({ password: guarded.password, code }))).toBe('200');
  });

  it('is not removed where it is the only way to sign in', async () => {
    const only = browser();
    const { csrfToken } = (await only.signIn(someone())).data;
    const api = instance.api.with({ cookie: only.jar.header('/'), 'x-csrf-token': csrfToken });
    expect(outcome(await api.post(`${OIDC}/unlink`, { issuer: issuer.url }))).toBe('400 bad_request');
  });
});
