import { expect, it } from 'vitest';
import { ACCOUNT, SESSION, useTestGateway } from '../testing/test-gateway.ts';

const opened = async () => ({ account: ACCOUNT, session: SESSION });
const gateway = useTestGateway({
  accounts: { signIn: opened, signUp: opened },
  credentials: { resetPassword: async () => ({}) },
});

const newPassword = 'another long passphrase';
const signIn = ['sign-in', { email: ACCOUNT.email, password: newPassword }] as const;
const COOKIE = { cookie: 'session=previous' };

it.each([
  ['a password reset', 'password/reset', { token: 'a-token', newPassword }, {}, '"cache"'],
  ['a sign-in that replaces a session', ...signIn, COOKIE, '"cache"'],
  ['a sign-up that replaces a session', 'sign-up', { ...signIn[1], username: ACCOUNT.username }, COOKIE, '"cache"'],
  ['a first sign-in', ...signIn, {}, null],
])('%s clears the cache of a browser whose session it ends', async (_name, path, body, headers, expected) => {
  const response = await gateway.send('POST', `/api/v1/auth/${path}`, { body, headers });
  expect(response.outcome).toBe('200');
  expect(response.headers.get('clear-site-data')).toBe(expected);
});
