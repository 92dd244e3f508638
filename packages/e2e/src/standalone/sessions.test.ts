import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer } from '../client/api.ts';
import { cookieOf, createApplication, type Owner, PASSWORD, readState, sharedApi, signUp, unique } from '../client/caller.ts';
import { outcome } from '../client/files.ts';
import { KEY_ROUTES, nameOf, SESSION_ROUTES } from '../client/routes.ts';

const SIGN_IN = '/api/v1/auth/sign-in';
const SIGN_UP = '/api/v1/auth/sign-up';
const SESSION = '/api/v1/auth/session';
const ATTRIBUTES = ['Path=/', 'HttpOnly', 'SameSite=Lax'];

/** Every route by which a session may change something. */
const CHANGES = [...KEY_ROUTES, ...SESSION_ROUTES].filter(({ method }) => method !== 'GET');

/** The attributes of the cookie that a response sets, without its value. */
const attributesOf = ({ headers }: Answer) => new Set((headers.get('set-cookie') ?? '').split('; ').slice(1));
const newBody = () => ({ username: unique('u'), email: `${unique('u')}@example.com`, password: PASSWORD });

let owner: Owner;
let other: Owner;
let applicationId: string;
beforeAll(async () => {
  [owner, other] = await Promise.all([signUp(), signUp()]);
  applicationId = await createApplication(owner.session);
});

const signIn = (email = owner.email, password = owner.password, cookie = '') =>
  sharedApi().with({ cookie }).post(SIGN_IN, { email, password });
const readSession = (cookie: string) => sharedApi().with({ cookie }).get(SESSION);

describe('the session cookie', () => {
  it('is unreadable for scripts and other sites, lasts thirty days, and is cleared by signing out', async () => {
    const answer = await signIn();
    expect(attributesOf(answer)).toEqual(new Set(['Max-Age=2592000', ...ATTRIBUTES]));
    const cookie = cookieOf(answer.headers);
    expect(cookie).toMatch(/^session=[A-Za-z0-9_-]{43}$/);
    expect(answer.text).not.toContain(cookie.slice('session='.length));
    const session = sharedApi().with({ cookie, 'x-csrf-token': answer.data.csrfToken });
    const signedOut = await session.post('/api/v1/auth/sign-out');
    expect([cookieOf(signedOut.headers), attributesOf(signedOut)]).toEqual(['session=', new Set(['Max-Age=0', ...ATTRIBUTES])]);
  });

  it('is new at each sign-in, as is the CSRF token, and ends the session that the client had', async () => {
    const [first, second] = [await signIn(), await signIn()];
    expect(cookieOf(first.headers)).not.toBe(cookieOf(second.headers));
    expect(first.data.csrfToken).not.toBe(second.data.csrfToken);
    expect((await readSession(cookieOf(first.headers))).data.csrfToken).toBe(first.data.csrfToken);
    expect(outcome(await signIn(owner.email, 'not the password', cookieOf(first.headers)))).toBe('401 unauth');
    expect(outcome(await readSession(cookieOf(first.headers)))).toBe('200');
    const third = await signIn(owner.email, owner.password, cookieOf(first.headers));
    expect(outcome(await readSession(cookieOf(first.headers)))).toBe('401 unauth');
    for (const { headers } of [second, third]) expect(outcome(await readSession(cookieOf(headers)))).toBe('200');
  });
});

describe('signing in', () => {
  it('gives the same response for a wrong email and a wrong password', async () => {
    const visible = ({ status, text, headers }: Answer) => [status, text, [...headers.keys()], headers.get('set-cookie')];
    const wrong = await signIn(owner.email, 'not the password');
    expect([outcome(wrong), wrong.headers.get('set-cookie')]).toEqual(['401 unauth', null]);
    const emails = [`${unique('unknown')}@example.com`, 'unknown', `${owner.email} `, owner.username, "' OR 1=1 --", '%'];
    for (const email of emails) expect(visible(await signIn(email)), email).toEqual(visible(wrong));
    for (const password of [PASSWORD.toUpperCase(), `${PASSWORD} `, PASSWORD.slice(0, -1), 'x', 'a'.repeat(128)])
      expect(visible(await signIn(owner.email, password)), password).toEqual(visible(wrong));
  });
});

describe('the sessions of an account', () => {
  const SESSIONS = '/api/v1/auth/sessions';

  it('are listed with their clients, without their tokens, and end one by one', async () => {
    const { session: api, email, password, cookie } = await signUp(sharedApi().with({ 'user-agent': 'Signing up' }));
    const second = await sharedApi().with({ 'user-agent': '<b>café</b>' }).post(SIGN_IN, { email, password });
    const secondCookie = cookieOf(second.headers);
    const listed = await api.get(SESSIONS);
    expect(listed.message).toBe('Successfully fetched sessions.');
    const record = (current: boolean, userAgent: string) => ({
      ...{ id: expect.stringMatching(/^[0-9a-f-]{36}$/), current, userAgent, lastUsedIp: '127.0.0.1' },
      ...{ createdAt: expect.stringMatching(/Z$/), lastUsedAt: expect.stringMatching(/Z$/) },
    });
    expect(listed.data).toEqual([record(true, 'Signing up'), record(false, '<b>café</b>')]);
    for (const one of [cookie, secondCookie]) expect(listed.text).not.toContain(one.slice('session='.length));
    const [{ id: ownId }, { id: secondId }] = listed.data;
    for (const id of [secondId, ownId, 'x'])
      expect(outcome(await other.session.delete(`${SESSIONS}/${id}`)), id).toBe('404 not_found');
    const ended = await api.delete(`${SESSIONS}/${secondId}`);
    expect([outcome(ended), ended.message, ended.headers.get('set-cookie')]).toEqual(['200', 'Session ended.', null]);
    expect(outcome(await readSession(secondCookie))).toBe('401 unauth');
    expect(outcome(await api.delete(`${SESSIONS}/${secondId}`))).toBe('404 not_found');
    expect((await api.get(SESSIONS)).data).toEqual([listed.data[0]]);
    const signedOut = await api.delete(`${SESSIONS}/${ownId}`);
    expect([outcome(signedOut), cookieOf(signedOut.headers)]).toEqual(['200', 'session=']);
    expect(outcome(await readSession(cookie))).toBe('401 unauth');
  });
});

describe('a session changes nothing', () => {
  const { port, baseUrl } = inject('latchkeyInstance');
  let state: string;
  beforeAll(async () => {
    state = await readState(owner);
  });

  it.each(CHANGES.map((route) => [nameOf(route), route] as const))(
    'by %s without its own token, or from another origin',
    async (_name, route) => {
      const send = async (headers: Record<string, string>) =>
        outcome(await owner.session.with(headers).send(route.method, route.path, route.request(applicationId)));
      for (const token of ['', other.csrfToken]) expect(await send({ 'x-csrf-token': token }), token).toBe('403 csrf_invalid');
      for (const origin of ['null', 'https://evil.example']) expect(await send({ origin }), origin).toBe('403 csrf_invalid');
    },
  );

  it('and none of these requests changed anything', async () => {
    expect(await readState(owner)).toBe(state);
    expect((await owner.session.get(SESSION)).data.account).toMatchObject({ twoFactorEnabled: false, avatarUrl: null });
  });

  it('but is let in from its own origin, and needs no token to read', async () => {
    for (const origin of [baseUrl, `http://localhost:${port}`]) {
      const api = owner.session.with({ origin });
      expect(outcome(await api.post('/api/v1/panel/create-application', { name: unique() })), origin).toBe('200');
    }
    const reader = owner.session.with({ 'x-csrf-token': '', origin: 'https://evil.example' });
    expect(outcome(await reader.get('/api/v1/panel/get-applications'))).toBe('200');
  });

  it('nor is one opened from another origin', async () => {
    const foreign = sharedApi().with({ origin: 'https://evil.example' });
    expect(outcome(await foreign.post(SIGN_IN, { email: owner.email, password: PASSWORD }))).toBe('403 csrf_invalid');
    expect(outcome(await foreign.post(SIGN_UP, newBody()))).toBe('403 csrf_invalid');
  });
});
