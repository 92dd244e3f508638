import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { cookieOf, createApplication, type Owner, readState, sharedApi, signUp } from '../testing/caller.ts';
import { KEY_ROUTES, nameOf, SESSION_ROUTES } from '../testing/routes.ts';

const outcome = ({ status, code }: Answer) => `${status} ${code}`;

/** Every route that a session may change something by. */
const CHANGES = [...KEY_ROUTES, ...SESSION_ROUTES].filter(({ method }) => method !== 'GET');

let owner: Owner;
let other: Owner;
let applicationId: string;
let state: string;
beforeAll(async () => {
  [owner, other] = await Promise.all([signUp(), signUp()]);
  applicationId = await createApplication(owner.session);
  state = await readState(owner);
});

describe.each(CHANGES.map((route) => [nameOf(route), route] as const))('%s', (_name, { method, path, request }) => {
  const send = (headers: Record<string, string>) => owner.session.with(headers).send(method, path, request(applicationId));

  it('is refused to a session without its own CSRF token', async () => {
    for (const token of ['', 'wrong', other.csrfToken, owner.csrfToken.slice(1), `${owner.csrfToken}x`]) {
      expect(outcome(await send({ 'x-csrf-token': token })), token).toBe('403 csrf_invalid');
    }
  });

  it('is refused to a page of another origin that has the token', async () => {
    const { port } = inject('latchkeyInstance');
    const origins = [
      'null',
      'https://evil.example',
      `https://127.0.0.1:${port}`,
      `https://localhost:${port}`,
      `http://127.0.0.1:${port + 1}`,
      'http://127.0.0.1',
      `http://a.localhost:${port}`,
      `http://localhost.evil.example:${port}`,
      `http://127.0.0.1:${port}/`,
      'file://',
    ];
    for (const origin of origins) expect(outcome(await send({ origin })), origin).toBe('403 csrf_invalid');
  });
});

describe('all that was refused', () => {
  it('changed nothing', async () => {
    expect(await readState(owner)).toBe(state);
    expect((await owner.session.get('/api/v1/auth/session')).data.account.twoFactorEnabled).toBe(false);
  });
});

describe('the session that a client has when it signs in', () => {
  const signIn = (cookie: string, password = owner.password) =>
    sharedApi().with({ cookie }).post('/api/v1/auth/sign-in', { email: owner.email, password });
  const look = async (cookie: string) => outcome(await sharedApi().with({ cookie }).get('/api/v1/auth/session'));

  it('ends, and its token is never that of the next one', async () => {
    const first = cookieOf((await signIn('')).headers);
    expect(await look(first)).toBe('200 ');
    const second = cookieOf((await signIn(first)).headers);
    expect(second).not.toBe(first);
    expect([await look(first), await look(second)]).toEqual(['401 unauth', '200 ']);
  });

  it('goes on when signing in fails', async () => {
    const cookie = cookieOf((await signIn('')).headers);
    expect(outcome(await signIn(cookie, 'not the password'))).toBe('401 unauth');
    expect(await look(cookie)).toBe('200 ');
  });

  it('is no hindrance when it is none', async () => {
    for (const cookie of ['session=', 'session=abc', `session=${'a'.repeat(43)}`, `session=${'a'.repeat(4_000)}`]) {
      expect(outcome(await signIn(cookie))).toBe('200 ');
    }
  });
});
