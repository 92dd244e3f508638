import { EMAIL_LENGTH_MAX, PASSWORD } from '@latchkey/contract/lengths';
import { USERNAME, USERNAME_RULE } from '@latchkey/contract/username';
import { fromConnectError } from '@latchkey/kit/errors/errors';
import { Counter } from '@latchkey/kit/telemetry/metrics';
import type { Account, SignInResponse, SignUpResponse } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import type { OidcSignedIn } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { clearCache, readCookie } from '../authentication/cookies.ts';
import { readSessionClient } from '../authentication/credential.ts';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import { emailText, idOf, issuerName, newPassword, nonEmptyText, timestamp, twoFactorCode } from '../routing/schemas.ts';
import { avatarUrlOf } from './avatar.ts';

const failures = new Counter({
  name: 'latchkey_sign_in_failures_total',
  help: 'Sign-ins with a password that failed, by reason.',
  labels: ['reason'],
});

const account = component('Account', {
  id: idOf('account', 'Account id.'),
  username: z.string().meta({ examples: ['ada'] }),
  email: z.string().meta({ examples: ['ada@example.com'] }),
  avatarUrl: z.string().nullable(),
  twoFactorEnabled: z.boolean(),
  createdAt: timestamp,
});

export const session = z
  .object({ account, csrfToken: z.string().meta({ description: 'For the header `X-CSRF-Token`.' }) })
  .meta({ id: 'Session' });

const signInMethods = component('SignInMethods', {
  signUpOpen: z.boolean().meta({ description: 'Whether anyone may sign up.' }),
  oidcIssuers: z.array(issuerName),
});

const EXAMPLE_SIGN_IN = { email: 'ada@example.com', password: 'correct horse battery staple' };

export const sessionCookieHeader = { 'Set-Cookie': 'The cookie of the session.' };

const signUpBody = z.strictObject({
  username: z.string().regex(USERNAME, USERNAME_RULE),
  email: emailText(),
  password: newPassword,
});

const signInBody = z.strictObject({
  email: nonEmptyText(EMAIL_LENGTH_MAX),
  password: nonEmptyText(PASSWORD.max),
  code: z
    .optional(twoFactorCode)
    .meta({ description: 'Code of the second factor or a recovery code, for accounts that have one; ignored for others.' }),
});

export function authRoutes(context: RouteContext) {
  const { clients, limits, signInFailures, cookies } = context;
  return {
    signUp: defineRoute('POST /api/v1/auth/sign-up', 'public', {
      summary: 'Create an account',
      description: 'Opens a session: the response sets the session cookie.',
      limit: { limit: limits.signUp, per: 'ip' },
      body: signUpBody,
      examples: { account: { username: 'ada', ...EXAMPLE_SIGN_IN } },
      data: session,
      successHeaders: sessionCookieHeader,
      message: 'Signed up.',
      handle: async ({ body, raw, clientIp, reply }) => {
        const opened = await clients.accounts.signUp({ ...body, ...readSessionClient(raw) });
        return openSession(context, { reply, clientIp }, opened);
      },
    }),
    signIn: defineRoute('POST /api/v1/auth/sign-in', 'public', {
      summary: 'Sign in',
      description: [
        'Opens a session: the response sets the session cookie. A wrong email and a wrong password get the same response.',
        'With two-factor authentication on, the right password without a `code` gets 401 `two_factor_required`.',
        'The session of the cookie of the request is ended.',
      ].join(' '),
      limit: { limit: limits.signIn, per: 'ip' },
      body: signInBody,
      examples: { account: EXAMPLE_SIGN_IN },
      data: session,
      successHeaders: sessionCookieHeader,
      message: 'Signed in.',
      handle: async ({ body, raw, clientIp, reply }) => {
        const request = { ...body, ...readSessionClient(raw) };
        const opened = await signInFailures.count(body.email, clientIp, () =>
          clients.accounts.signIn(request).catch((err) => {
            failures.add(1, fromConnectError(err)?.reason ?? 'unavailable');
            throw err;
          }),
        );
        return openSession(context, { reply, clientIp }, opened);
      },
    }),
    getSignInMethods: defineRoute('GET /api/v1/auth/methods', 'public', {
      summary: 'List the ways to sign in',
      description: 'Options of a sign-in page besides email and password.',
      data: signInMethods,
      message: 'Successfully fetched sign-in methods.',
      handle: () => clients.accounts.getSignInMethods({}),
    }),
    signOut: defineRoute('POST /api/v1/auth/sign-out', 'session', {
      summary: 'Sign out',
      message: 'Signed out.',
      handle: async ({ principal: { accountId, credentialId: sessionId }, reply }) => {
        await clients.accounts.signOut({ accountId, sessionId });
        cookies.clear(reply, 'session');
      },
    }),
    signOutEverywhere: defineRoute('POST /api/v1/auth/sign-out-everywhere', 'session', {
      summary: 'Sign out everywhere',
      description: 'Ends every session of the account, this one too. Management keys stay.',
      message: 'Signed out everywhere.',
      handle: async ({ principal, reply }) => {
        await clients.accounts.signOutEverywhere({ accountId: principal.accountId });
        cookies.clear(reply, 'session');
      },
    }),
    getSession: defineRoute('GET /api/v1/auth/session', 'session', {
      summary: 'Get the session',
      data: session,
      message: 'Successfully fetched session.',
      handle: async ({ principal }) => {
        const found = await clients.accounts.getAccount({ accountId: principal.accountId });
        return { account: toAccount(found.account), csrfToken: principal.csrfToken };
      },
    }),
  };
}

export async function openSession(
  { cookies, signInFailures }: RouteContext,
  { reply, clientIp }: { readonly reply: FastifyReply; readonly clientIp: string },
  opened: SignUpResponse | SignInResponse | OidcSignedIn,
) {
  const { token = '', csrfToken, expiresAt } = opened.session ?? {};
  await signInFailures.remember(opened.account?.email ?? '', clientIp);
  if (readCookie(reply.request.raw, 'session') !== undefined) clearCache(reply);
  cookies.set(reply, 'session', token, expiresAt);
  return { account: toAccount(opened.account), csrfToken };
}

export function toAccount(account: Account | undefined) {
  const { avatarId, pictureUrl } = account as Account;
  return { ...account, avatarUrl: avatarId === undefined ? pictureUrl : avatarUrlOf(avatarId) };
}
