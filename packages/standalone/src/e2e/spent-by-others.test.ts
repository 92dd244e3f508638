import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { signUp, unique } from '../testing/caller.ts';
import { OidcBrowser, someoneAt } from '../testing/oidc-browser.ts';
import { type OidcIssuer, startOidcIssuer } from '../testing/oidc-issuer.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';
import { signInTo, signUpGuarded } from '../testing/two-factor.ts';

/** What an account or an address has of a limit is not spent by pages that its owner looks at, and not widened by a session that was found. */
let issuer: OidcIssuer;
let instance: OwnInstance;
beforeAll(async () => {
  issuer = await startOidcIssuer();
  const env = { ...issuer.env, TRUSTED_PROXIES: 'loopback', AUTH_ATTEMPTS_PER_MINUTE: '4', SIGN_IN_FAILURES_PER_15_MINUTES: '3' };
  instance = await startOwnInstance({ env: { ...env, PASSWORD_FAILURES_PER_15_MINUTES: '5' } });
});
afterAll(async () => {
  await instance.stop();
  await issuer.stop();
});

let addresses = 0;
const newClient = () => instance.api.with({ 'x-forwarded-for': `203.0.113.${++addresses}` });
const outcome = ({ status, code }: Answer) => `${status} ${code ?? ''}`.trim();
const times = async (count: number, send: () => Promise<Answer>) => {
  const outcomes: string[] = [];
  for (let i = 0; i < count; i += 1) outcomes.push(outcome(await send()));
  return outcomes;
};

describe('a page of another site', () => {
  const PAGE = { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' };

  it.each(['sign-in', 'sign-up'])('does not spend what its visitor has of %s', async (name) => {
    const client = newClient();
    const post = (headers: Record<string, string>, body: object) => client.with(headers).post(`/api/v1/auth/${name}`, body);
    expect(await times(6, () => post(PAGE, {}))).toEqual(Array(6).fill('403 csrf_invalid'));
    const username = unique('visitor');
    const password = 'correct horse battery';
    const body = { email: `${username}@example.com`, password };
    const own = name === 'sign-in' ? body : { ...body, username };
    const expected = name === 'sign-in' ? '401 unauth' : '200';
    expect(outcome(await post({}, own))).toBe(expected);
  });

  it('does not spend their visits by OpenID Connect, with pictures and frames', async () => {
    const client = newClient();
    const embed = (path: string, dest: string) => {
      const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': dest };
      return client.with(headers).get(`/api/v1/auth/oidc/${path}`, { issuer: 'corp' });
    };
    for (const [path, dest] of [
      ['start', 'image'],
      ['callback', 'image'],
      ['callback', 'iframe'],
      ['callback/corp', 'image'],
    ] as const) {
      expect(await times(4, () => embed(path, dest)), `${path} as ${dest}`).toEqual(Array(4).fill('403 csrf_invalid'));
    }
    const browser = new OidcBrowser(client, issuer);
    expect((await browser.signIn(someoneAt(issuer))).status).toBe(200);
  });
});

describe('a session that somebody found', () => {
  it.each(['two-factor/disable', 'oidc/link', 'oidc/unlink'])(
    'guesses no more at the password by %s than sign-in would',
    async (path) => {
      const owner = await signUpGuarded(newClient());
      const linking = new OidcBrowser(owner.session, issuer, owner.cookie);
      const { data } = await linking.link(owner.csrfToken, { password: owner.password, code: owner.nextCode() });
      expect((await linking.comeBack(await linking.visit(someoneAt(issuer), { url: data.url }))).status).toBe(200);
      const [code = '', another = ''] = owner.recoveryCodes;
      // Their own attempts at codes are spent first, as that once made guesses free.
      const rivals = newClient();
      for (let i = 0; i < 6; i += 1) await signInTo(newClient(), owner, owner.wrongCode());
      expect(outcome(await signInTo(rivals, owner, owner.nextCode()))).toBe('429 rate_limit_reached');
      const guess = (password: string) => {
        const body = { ...(path !== 'two-factor/disable' && { issuer: 'corp' }), password, code };
        return owner.session.with({ 'x-forwarded-for': `203.0.114.${++addresses}` }).post(`/api/v1/auth/${path}`, body);
      };
      const outcomes = await times(8, () => guess('a wrong guess'));
      const judged = outcomes.filter((one) => one === '400 bad_request');
      expect([4, 5]).toContain(judged.length);
      expect(outcomes.slice(5)).toEqual(Array(3).fill('429 rate_limit_reached'));
      expect(outcome(await guess(owner.password))).toBe('429 rate_limit_reached');
      // They were counted for sign-in too: it lets strangers try no more, but for the one attempt of each network.
      const stranger = newClient();
      expect(await times(2, () => signInTo(stranger, { ...owner, password: 'a wrong guess' }))).toEqual([
        '401 unauth',
        '429 rate_limit_reached',
      ]);
      expect(outcome(await signInTo(newClient(), owner, another))).toBe('200');
    },
  );

  it('says how long to wait for the next guess', async () => {
    const owner = await signUp(newClient());
    const link = (password: string) => {
      const session = owner.session.with({ 'x-forwarded-for': `203.0.115.${++addresses}` });
      return session.post('/api/v1/auth/oidc/link', { issuer: 'corp', password });
    };
    expect(await times(5, () => link('a wrong guess'))).toEqual(Array(5).fill('400 bad_request'));
    const denied = await link(owner.password);
    expect(outcome(denied)).toBe('429 rate_limit_reached');
    expect(denied.headers.get('ratelimit-policy')).toBe('"password-failures";q=5;w=900');
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(outcome(await signInTo(newClient(), owner))).toBe('200');
  });
});
