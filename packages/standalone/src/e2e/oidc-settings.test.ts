import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from 'vitest';
import { signUp, unique } from '../testing/caller.ts';
import { stopForLog } from '../testing/instance.ts';
import { OidcBrowser, someoneAt } from '../testing/oidc-browser.ts';
import { CLIENT_SECRET, type OidcIssuer, startOidcIssuer } from '../testing/oidc-issuer.ts';
import { startInstanceForTest, startOwnInstance } from '../testing/own-instance.ts';
import { readDatabase, readRedis } from '../testing/secret-places.ts';

let issuer: OidcIssuer;
beforeAll(async () => {
  issuer = await startOidcIssuer();
});
afterAll(() => issuer.stop());

const someone = () => someoneAt(issuer);

/** For what settings do, which is the same in either shape. */
const itOnce = it.runIf(inject('latchkeyInstance').shape === 'standalone');

itOnce('beginning and coming back are counted together for one address, and take nothing from its sign-ins', async () => {
  const { api } = await startInstanceForTest({ env: { ...issuer.env, AUTH_ATTEMPTS_PER_MINUTE: '3' } });
  const browser = new OidcBrowser(api, issuer);
  expect((await browser.start()).status).toBe(302);
  expect((await browser.start()).status).toBe(302);
  expect((await browser.comeBack('state=a&code=b')).status).toBe(401);
  expect(await browser.comeBack('state=a&code=b')).toMatchObject({ status: 429, code: 'rate_limit_reached' });
  expect((await browser.start()).status).toBe(429);
  const signIn = () => api.post('/api/v1/auth/sign-in', { email: 'a@example.com', password: 'wrong' });
  expect((await signIn()).status).toBe(401);
  // Codes are guessed, and so they are sign-in's.
  expect((await browser.complete('000000')).status).toBe(401);
  expect((await browser.complete('000000')).status).toBe(401);
  expect([(await browser.complete('000000')).status, (await signIn()).status]).toEqual([429, 429]);
});

itOnce('whoever has signed in by an issuer is at home there: a spent budget of strangers is not theirs', async () => {
  const env = { ...issuer.env, TRUSTED_PROXIES: 'loopback', SIGN_IN_FAILURES_PER_15_MINUTES: '2' };
  const { api } = await startInstanceForTest({ env });
  const login = someone();
  expect((await new OidcBrowser(api, issuer).signIn(login)).status).toBe(200);
  const tryIn = (from: string) =>
    api
      .with({ 'x-forwarded-for': from })
      .post('/api/v1/auth/sign-in', { email: `${login}@example.com`, password: 'wrong password' });
  const statuses = async (from: string, times: number) => {
    const found: number[] = [];
    for (let i = 0; i < times; i += 1) found.push((await tryIn(from)).status);
    return found;
  };
  expect(await statuses('198.51.100.1', 4)).toEqual([401, 401, 401, 429]);
  expect(await statuses('127.0.0.1', 3)).toEqual([401, 401, 429]);
  // One who is a stranger has a single attempt.
  expect(await statuses('198.51.100.2', 2)).toEqual([401, 429]);
});

itOnce('no more passwords may be guessed to link an account than to sign in to it', async () => {
  const { api } = await startInstanceForTest({ env: { ...issuer.env, SIGN_IN_FAILURES_PER_15_MINUTES: '2' } });
  const owner = await signUp(api);
  const linking = new OidcBrowser(api, issuer, owner.cookie);
  const link = async (proof?: { password: string }) => (await linking.link(owner.csrfToken, proof)).status;
  expect([await link(), await link(), await link()]).toEqual([200, 200, 200]);
  const wrong = { password: 'wrong password' };
  expect([await link(wrong), await link(wrong), await link(wrong), await link()]).toEqual([400, 400, 429, 429]);
});

itOnce('with sign-up closed nobody new comes in, and browsers are sent to a page that can tell them so', async () => {
  const returnUrl = 'https://dashboard.test/welcome?from=issuer';
  const env = { ...issuer.env, SIGN_UP: 'closed', OIDC_RETURN_URL: returnUrl };
  const { api } = await startInstanceForTest({ env });
  const browser = new OidcBrowser(api, issuer);
  const query = await browser.visit(someone());
  const refused = await browser.comeBackTo(query);
  expect([refused.status, refused.headers.get('location')]).toEqual([302, `${returnUrl}&error=sign_up_closed`]);
  expect(browser.jar.get('session')).toBeUndefined();
  const again = await browser.comeBackTo(query);
  expect(again.headers.get('location')).toBe(`${returnUrl}&error=unauth`);
  expect(again.headers.get('referrer-policy')).toBe('no-referrer');
});

itOnce('browsers are sent on with their session where there is a page for them', async () => {
  const env = { ...issuer.env, OIDC_ISSUERS: 'corp,away', OIDC_AWAY_ISSUER: 'http://127.0.0.1:1', OIDC_AWAY_CLIENT_ID: 'a' };
  const { api } = await startInstanceForTest({ env: { ...env, OIDC_RETURN_URL: 'https://dashboard.test/' } });
  for (const [name, error] of Object.entries({ nowhere: 'not_found', away: 'INTERNAL_ERROR' })) {
    const answer = await fetch(`${api.baseUrl}/api/v1/auth/oidc/start?issuer=${name}`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, `https://dashboard.test/?error=${error}`]);
  }
  const start = async (referer: string) => {
    const headers = { 'sec-fetch-site': 'cross-site', referer };
    return (await fetch(`${api.baseUrl}/api/v1/auth/oidc/start?issuer=corp`, { redirect: 'manual', headers })).status;
  };
  expect([await start('https://dashboard.test/'), await start('https://dashboard.test.evil.test/')]).toEqual([302, 403]);
  const browser = new OidcBrowser(api, issuer);
  const login = someone();
  const signedIn = await browser.comeBackTo(await browser.visit(login));
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([302, 'https://dashboard.test/']);
  expect((await browser.session()).data.account.username).toBe(login);
});

it('an issuer that is away is told of with 503, and is used again once it is back', async () => {
  const away = await startOidcIssuer();
  await away.stop();
  const env = { ...issuer.env, OIDC_ISSUERS: 'corp,away', OIDC_AWAY_ISSUER: away.url, OIDC_AWAY_CLIENT_ID: 'a' };
  const { api } = await startInstanceForTest({ env });
  const answer = await api.get('/api/v1/auth/oidc/start', { issuer: 'away' }, { mayFail: true });
  expect(answer).toMatchObject({ status: 503, code: 'INTERNAL_ERROR' });
  expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
  expect((await new OidcBrowser(api, issuer).signIn(someone())).status).toBe(200);
});

it('nothing that proves who somebody is stands in a log, in Redis or in the database', async () => {
  const database = await createEmptyTestDatabase();
  onTestFinished(() => database.drop());
  const { url: redisUrl } = await testRedis();
  const instance = await startOwnInstance({ databaseUrl: database.url, redisUrl, env: { ...issuer.env, LOG_LEVEL: 'trace' } });
  onTestFinished(() => instance.stop(), 60_000);
  const { api } = instance;

  const browser = new OidcBrowser(api, issuer);
  const login = someone();
  const query = await browser.visit(login);
  const flow = browser.jar.get('oidc_flow') ?? '';
  expect((await browser.comeBack(query)).status).toBe(200);
  browser.jar.set('oidc_flow', flow);
  expect((await browser.comeBack(query)).status).toBe(401);
  // Refusals say more in logs than successes do: an error of the issuer, a code that it does not know, a state that is wrong.
  const secrets: Record<string, string> = {};
  for (const name of ['code', 'error', 'state', 'iss']) {
    secrets[`wrong ${name}`] = unique('planted');
    const answer = new URLSearchParams(await browser.visit(login));
    answer.set(name, secrets[`wrong ${name}`] ?? '');
    expect((await browser.comeBack(answer.toString())).status, name).toBe(401);
    for (const [key, value] of answer) if (key !== 'iss') secrets[`${key} of ${name}`] = value;
  }
  const owner = await signUp(api);
  const linking = new OidcBrowser(api, issuer, owner.cookie);
  const { data } = await linking.link(owner.csrfToken);
  secrets['link flow'] = linking.jar.get('oidc_flow') ?? '';
  secrets.nonce = new URL(data.url).searchParams.get('nonce') ?? '';

  Object.assign(secrets, Object.fromEntries(new URLSearchParams(query)), { flow, CLIENT_SECRET, iss: unique('not-looked-for') });
  const grant = issuer.secrets.at(-1);
  expect(grant?.verifier).toMatch(/^[\w-]{43}$/);
  for (const one of issuer.secrets) Object.assign(secrets, one, { verifier: one.verifier, idToken: one.idToken });
  secrets.session = browser.jar.get('session') ?? '';
  const places = {
    redis: await readRedis(redisUrl),
    database: await readDatabase(database.url),
    log: await stopForLog(instance),
  };
  expect(places.log).toContain('a sign-in by OpenID Connect was refused');
  expect(places.redis).toContain('latchkey:limit:');
  expect(places.database).toContain(login);
  for (const [place, text] of Object.entries(places)) {
    for (const [name, secret] of Object.entries(secrets)) {
      expect(secret, name).not.toBe('');
      const hex = Buffer.from(secret).toString('hex');
      for (const form of [secret, hex, Buffer.from(secret).toString('base64')]) {
        expect(text.includes(form), `${name} in ${place}`).toBe(false);
      }
    }
  }
  for (const place of [places.log, places.redis]) expect(place).not.toContain(login);
});
