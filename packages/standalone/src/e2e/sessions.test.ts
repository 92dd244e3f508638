import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../testing/api.ts';
import { cookieOf, createApplication, type Owner, PASSWORD, sharedApi, signUp, unique } from '../testing/caller.ts';
import { type OwnInstance, startInstanceForTest, startOwnInstance } from '../testing/own-instance.ts';

const SIGN_IN = '/api/v1/auth/sign-in';
const SIGN_UP = '/api/v1/auth/sign-up';

const outcome = ({ status, code }: Answer) => `${status} ${code}`;
/** The attributes of the cookie that an answer sets, without its value. */
const attributesOf = ({ headers }: Answer) => new Set((headers.get('set-cookie') ?? '').split('; ').slice(1));

let owner: Owner;
beforeAll(async () => {
  owner = await signUp();
});

const signIn = (email = owner.email, password = owner.password) => sharedApi().post(SIGN_IN, { email, password });

describe('the session cookie', () => {
  it('is out of reach of scripts and other sites, and lasts thirty days', async () => {
    const answer = await signIn();
    expect(attributesOf(answer)).toEqual(new Set(['Max-Age=2592000', 'Path=/', 'HttpOnly', 'SameSite=Lax']));
    expect(cookieOf(answer.headers)).toMatch(/^session=[A-Za-z0-9_-]{43}$/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.text).not.toContain(cookieOf(answer.headers).slice('session='.length));
  });

  it('is another at each sign-in, as is the CSRF token, and the others stay valid', async () => {
    const answers = [await signIn(), await signIn(), await signIn()];
    expect(new Set(answers.map(({ headers }) => cookieOf(headers))).size).toBe(3);
    expect(new Set(answers.map(({ data }) => data.csrfToken)).size).toBe(3);
    for (const { headers, data } of answers) {
      const session = await sharedApi()
        .with({ cookie: cookieOf(headers) })
        .get('/api/v1/auth/session');
      expect(session.data.csrfToken).toBe(data.csrfToken);
    }
  });

  it('is not taken over from a client, who could have been given it', async () => {
    const chosen = `session=${'a'.repeat(43)}`;
    const answer = await sharedApi().with({ cookie: chosen }).post(SIGN_IN, { email: owner.email, password: owner.password });
    expect(cookieOf(answer.headers)).not.toBe(chosen);
    expect(outcome(await sharedApi().with({ cookie: chosen }).get('/api/v1/auth/session'))).toBe('401 unauth');
  });

  it('is cleared by signing out', async () => {
    const { session } = await signUp();
    const answer = await session.post('/api/v1/auth/sign-out');
    expect(cookieOf(answer.headers)).toBe('session=');
    expect(attributesOf(answer)).toEqual(new Set(['Max-Age=0', 'Path=/', 'HttpOnly', 'SameSite=Lax']));
  });

  it('is read among others, and only under its own name', async () => {
    const { cookie } = owner;
    const withCookie = async (text: string) => outcome(await sharedApi().with({ cookie: text }).get('/api/v1/auth/session'));
    expect(await withCookie(`a=b; ${cookie}; c=d`)).toBe('200 ');
    for (const text of [`x${cookie}`, cookie.replace('session', 'Session'), 'session', `session_id=${cookie}`, `${cookie}x`]) {
      expect(await withCookie(text), text).toBe('401 unauth');
    }
  });
});

describe('signing in', () => {
  it('finds an email in any case', async () => {
    expect((await signIn(owner.email.toUpperCase())).data.account.id).toBe(owner.accountId);
  });

  it('gives the same answer for a wrong email and a wrong password', async () => {
    const visible = ({ status, text, headers }: Answer) => ({
      status,
      text,
      names: [...headers.keys()],
      cookie: headers.get('set-cookie'),
    });
    const wrongPassword = visible(await signIn(owner.email, 'not the password'));
    expect(wrongPassword).toMatchObject({ status: 401, cookie: null });
    expect(JSON.parse(wrongPassword.text).code).toBe('unauth');
    const others = [
      `${unique('nobody')}@example.com`,
      'nobody',
      `${owner.email} `,
      ` ${owner.email}`,
      owner.username,
      "' OR 1=1 --",
      '%',
      `${owner.email}\u0130`,
    ];
    for (const email of others) expect(visible(await signIn(email)), email).toEqual(wrongPassword);
    for (const password of [
      owner.password.toUpperCase(),
      `${owner.password} `,
      owner.password.slice(0, -1),
      'x',
      'a'.repeat(128),
    ]) {
      expect(visible(await signIn(owner.email, password)), password).toEqual(wrongPassword);
    }
  });

  it('takes as long for an email without an account as for a wrong password', async () => {
    const times = { known: [] as number[], unknown: [] as number[] };
    for (let i = 0; i < 7; i += 1) {
      for (const kind of ['known', 'unknown'] as const) {
        const startedAt = performance.now();
        const answer = await signIn(kind === 'known' ? owner.email : `${unique('nobody')}@example.com`, 'not the password');
        expect(answer.status).toBe(401);
        times[kind].push(performance.now() - startedAt);
      }
    }
    const fastest = (list: number[]) => Math.min(...list);
    // Without the hash, it would be some ten times as fast.
    expect(fastest(times.unknown)).toBeGreaterThan(fastest(times.known) / 3);
    expect(fastest(times.known)).toBeGreaterThan(fastest(times.unknown) / 3);
  });
});

describe('signing up', () => {
  const signUpAs = (username: string, email: string) => sharedApi().post(SIGN_UP, { username, email, password: PASSWORD });

  it('refuses a name or an email that is taken in any case, and says no more', async () => {
    const other = () => unique('other');
    const answers = [
      await signUpAs(owner.username, `${other()}@example.com`),
      await signUpAs(owner.username.toUpperCase(), `${other()}@example.com`),
      await signUpAs(other(), owner.email),
      await signUpAs(other(), owner.email.toUpperCase()),
      await signUpAs(owner.username, owner.email),
    ];
    expect(new Set(answers.map(outcome))).toEqual(new Set(['409 account_exists']));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    for (const { headers } of answers) expect(headers.get('set-cookie')).toBeNull();
  });

  it('lets one of many at once have a name, and one an email', async () => {
    const username = unique('u');
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => signUpAs(i % 2 ? username : username.toUpperCase(), `${unique('u')}@example.com`)),
    );
    expect(answers.map(outcome).sort()).toEqual(['200 ', ...Array(5).fill('409 account_exists')]);
  });
});

describe('a state-changing request of a session', () => {
  let session: Api;
  let applicationId: string;
  beforeAll(async () => {
    session = owner.session;
    applicationId = await createApplication(session);
  });

  /** One request of each kind that changes something. */
  const changes = (api: Api): Array<Promise<Answer>> => [
    api.post('/api/v1/panel/create-application', { name: 'Made by another page' }),
    api.post('/api/v1/panel/create-application-license-levels', { levels: ['x'] }, { applicationId }),
    api.patch('/api/v1/panel/update-application-settings', { field: 'status', value: 'paused' }, { applicationId }),
    api.patch('/api/v1/panel/update-api-keys', { type: 'httpKey' }, { applicationId }),
    api.delete('/api/v1/panel/delete-application', { applicationId, code: '' }),
    api.post('/api/v1/panel/api-keys', { name: 'A key', scopes: ['files:read'], allApplications: true }),
    api.post('/api/v1/auth/sign-out'),
  ];

  it('is refused without the session’s own CSRF token', async () => {
    const other = await signUp();
    for (const token of [
      '',
      'wrong',
      other.csrfToken,
      owner.csrfToken.toLowerCase(),
      `${owner.csrfToken}x`,
      owner.csrfToken.slice(1),
    ]) {
      const answers = await Promise.all(changes(session.with({ 'x-csrf-token': token })));
      expect(new Set(answers.map(outcome)), token).toEqual(new Set(['403 csrf_invalid']));
    }
  });

  it('is refused for a page of another origin, even with the token', async () => {
    for (const origin of ['null', 'https://evil.example', 'http://127.0.0.1', 'http://localhost.evil.example', 'file://']) {
      const answers = await Promise.all(changes(session.with({ origin })));
      expect(new Set(answers.map(outcome)), origin).toEqual(new Set(['403 csrf_invalid']));
    }
  });

  it('is let in for a page of its own', async () => {
    const { baseUrl, port } = inject('latchkeyInstance');
    for (const origin of [baseUrl, `http://localhost:${port}`]) {
      const levels = { levels: [unique().slice(0, 16)] };
      const answer = await session
        .with({ origin })
        .post('/api/v1/panel/create-application-license-levels', levels, { applicationId });
      expect(outcome(answer), origin).toBe('200 ');
    }
  });

  it('needs no token when it only reads', async () => {
    const reader = session.with({ 'x-csrf-token': '', origin: 'https://evil.example' });
    expect(outcome(await reader.get('/api/v1/panel/get-applications'))).toBe('200 ');
  });

  it('changed nothing where it was refused', async () => {
    expect((await session.get('/api/v1/auth/session')).status).toBe(200);
    expect((await session.get('/api/v1/panel/get-applications')).data).toHaveLength(1);
    expect((await session.get('/api/v1/panel/get-application-settings', { applicationId })).data.status).toBe('online');
    expect((await session.get('/api/v1/panel/api-keys')).data).toEqual([]);
  });
});

describe('signing up and in', () => {
  it('from a page of another origin is refused', async () => {
    const foreign = sharedApi().with({ origin: 'https://evil.example' });
    expect(outcome(await foreign.post(SIGN_IN, { email: owner.email, password: owner.password }))).toBe('403 csrf_invalid');
    const body = { username: unique('u'), email: `${unique('u')}@example.com`, password: PASSWORD };
    expect(outcome(await foreign.post(SIGN_UP, body))).toBe('403 csrf_invalid');
  });
});

describe('an instance that others reach by HTTPS', () => {
  const PUBLIC_URL = 'https://panel.example.com';
  let instance: OwnInstance;
  beforeAll(async () => {
    instance = await startOwnInstance({ env: { PUBLIC_URL } });
  });
  afterAll(() => instance.stop());

  it('marks its cookies so that they are never sent without it', async () => {
    const body = { username: unique('u'), email: `${unique('u')}@example.com`, password: PASSWORD };
    const opened = await instance.api.post(SIGN_UP, body);
    expect(attributesOf(opened)).toEqual(new Set(['Max-Age=2592000', 'Path=/', 'HttpOnly', 'SameSite=Lax', 'Secure']));
    const session = instance.api.with({ cookie: cookieOf(opened.headers), 'x-csrf-token': opened.data.csrfToken });
    expect(attributesOf(await session.post('/api/v1/auth/sign-out')).has('Secure')).toBe(true);
  });

  it('takes pages of its public URL for its own, by HTTPS alone', async () => {
    const attempt = (origin: string) =>
      instance.api.with({ origin }).post(SIGN_IN, { email: 'nobody@example.com', password: PASSWORD });
    expect(outcome(await attempt(PUBLIC_URL))).toBe('401 unauth');
    expect(outcome(await attempt('http://panel.example.com'))).toBe('403 csrf_invalid');
  });
});

describe('an instance that is closed to new accounts', () => {
  it('says so, after it has looked at the request', async () => {
    const instance = await startInstanceForTest({ env: { SIGN_UP: 'closed' } });
    const body = { username: unique('u'), email: `${unique('u')}@example.com`, password: PASSWORD };
    expect(outcome(await instance.api.post(SIGN_UP, body))).toBe('403 sign_up_closed');
    expect(outcome(await instance.api.post(SIGN_UP, { ...body, password: 'short' }))).toBe('400 VALIDATION_ERROR');
  });
});
