import type { IncomingMessage } from 'node:http';
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { fromConnectError } from '@latchkey/kit/errors/errors';
import { Counter } from '@latchkey/kit/telemetry/metrics';
import { hasLength } from '@latchkey/kit/validation/text';
import {
  type Account,
  AccountService,
  type Session,
  type SignInResponse,
  type SignUpResponse,
} from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { stringifySetCookie } from 'cookie';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { readCredential, SESSION_COOKIE } from '../authentication/credential.ts';
import type { SignInFailures } from '../authentication/sign-in-failures.ts';
import type { Clients } from '../clients.ts';
import type { Limits } from '../limit/limits.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { avatarUrlOf } from './avatar.ts';
import { countFailures } from './password.ts';
import { idOf, nonEmptyText, timestamp, twoFactorCode } from './schemas.ts';

const TAG = 'Accounts';

const failures = new Counter({
  name: 'latchkey_sign_in_failures_total',
  help: 'Sign-ins with a password that failed, by reason.',
  labels: ['reason'],
});

const account = z
  .object({
    id: idOf('account', 'Account id.'),
    username: z.string().meta({ examples: ['ada'] }),
    email: z.string().meta({ examples: ['ada@example.com'] }),
    avatarUrl: z.string().nullable(),
    twoFactorEnabled: z.boolean(),
    createdAt: timestamp,
  })
  .meta({ id: 'Account' });

/** An account and the CSRF token of its session. */
export const session = z
  .object({ account, csrfToken: z.string().meta({ description: 'For the header `X-CSRF-Token`.' }) })
  .meta({ id: 'Session' });

const EXAMPLE_SIGN_IN = { email: 'ada@example.com', password: 'correct horse battery staple' };

/** Header of responses that open a session. */
export const sessionCookieHeader = { 'Set-Cookie': 'The cookie of the session.' };

const signUpBody = z.strictObject({
  username: z.string().regex(/^[A-Za-z0-9_-]{3,32}$/, 'must be 3 to 32 ASCII letters, digits, underscores and dashes'),
  email: z.email().max(254),
  password: z
    .string()
    .refine((text) => hasLength(text, 10, 128), 'must be 10 to 128 characters without NUL')
    .meta({ minLength: 10, maxLength: 128, description: '10 to 128 characters.' }),
});

const signInBody = z.strictObject({
  email: nonEmptyText(254),
  password: nonEmptyText(128),
  code: twoFactorCode
    .optional()
    .meta({ description: 'Code of the second factor or a recovery code, for accounts that have one; ignored for others.' }),
});

export interface AuthRouteOptions {
  readonly clients: Clients;
  readonly limits: Limits;
  readonly signInFailures: SignInFailures;
  /** Whether the session cookie is for HTTPS only. */
  readonly secureCookie: boolean;
}

/** Sign-up, sign-in, sign-out and the session (decisions 4). */
export function authRoutes({ clients, limits, signInFailures, secureCookie }: AuthRouteOptions): Route[] {
  const open = (reply: FastifyReply, opened: SignUpResponse | SignInResponse) => {
    setSessionCookie(reply, secureCookie, opened.session as Session);
    return { account: toAccount(opened.account as Account), csrfToken: opened.session?.csrfToken };
  };
  return [
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/sign-up',
      operationId: 'signUp',
      access: 'public',
      tag: TAG,
      summary: 'Create an account',
      description: 'Opens a session: the response sets the session cookie.',
      limit: { limit: limits.signUp, per: 'ip' },
      body: signUpBody,
      examples: { account: { username: 'ada', ...EXAMPLE_SIGN_IN } },
      data: session,
      successHeaders: sessionCookieHeader,
      failures: [AccountService.method.signUp],
      message: 'Signed up.',
      handle: async ({ body, raw, clientIp, reply }) => {
        const request = { ...body, previousSessionToken: sessionTokenOf(raw) };
        const opened = await clients.accounts.signUp(request);
        await signInFailures.remember(body.email, clientIp);
        return open(reply, opened);
      },
    }),
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/sign-in',
      operationId: 'signIn',
      access: 'public',
      tag: TAG,
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
      failures: [AccountService.method.signIn],
      message: 'Signed in.',
      handle: async ({ body, raw, clientIp, reply }) => {
        const request = { ...body, previousSessionToken: sessionTokenOf(raw) };
        const opened = await countFailures(signInFailures, { email: body.email, clientIp }, () =>
          clients.accounts.signIn(request).catch((err) => {
            failures.add(1, fromConnectError(err)?.reason ?? 'unavailable');
            throw err;
          }),
        );
        await signInFailures.remember(body.email, clientIp);
        return open(reply, opened);
      },
    }),
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/sign-out',
      operationId: 'signOut',
      access: 'session',
      tag: TAG,
      summary: 'Sign out',
      message: 'Signed out.',
      handle: async ({ principal, reply }) => {
        await clients.accounts.signOut({ accountId: principal.accountId, sessionId: principal.credentialId });
        setSessionCookie(reply, secureCookie, undefined);
      },
    }),
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/sign-out-everywhere',
      operationId: 'signOutEverywhere',
      access: 'session',
      tag: TAG,
      summary: 'Sign out everywhere',
      description: 'Ends every session of the account, this one too. Management keys stay.',
      message: 'Signed out everywhere.',
      handle: async ({ principal, reply }) => {
        await clients.accounts.signOutEverywhere({ accountId: principal.accountId });
        setSessionCookie(reply, secureCookie, undefined);
      },
    }),
    defineRoute({
      method: 'GET',
      url: '/api/v1/auth/session',
      operationId: 'getSession',
      access: 'session',
      tag: TAG,
      summary: 'Get the session',
      data: session,
      message: 'Successfully fetched session.',
      handle: async ({ principal }) => {
        const found = await clients.accounts.getAccount({ accountId: principal.accountId });
        return { account: toAccount(found.account as Account), csrfToken: principal.csrfToken };
      },
    }),
  ];
}

/** The session token of a request that gets a new one; empty for none. */
export function sessionTokenOf(req: IncomingMessage): string {
  const credential = readCredential(req);
  return credential.kind === 'session' ? credential.text : '';
}

/** Sets the cookie of a session for its absolute lifetime, or clears it. */
export function setSessionCookie(reply: FastifyReply, secure: boolean, opened: Session | undefined): void {
  const seconds = opened ? Math.round((timestampDate(opened.expiresAt as Timestamp).getTime() - Date.now()) / 1000) : 0;
  const cookie = {
    name: SESSION_COOKIE,
    value: opened?.token ?? '',
    httpOnly: true,
    sameSite: 'lax' as const,
    path: '/',
    secure,
    maxAge: Math.max(0, seconds),
  };
  reply.header('set-cookie', stringifySetCookie(cookie));
}

/** An account as this interface shows it. */
export function toAccount({ id, username, email, avatarId, pictureUrl, twoFactorEnabled, createdAt }: Account) {
  const createdAtText = timestampDate(createdAt as Timestamp).toISOString();
  const avatarUrl = avatarId === undefined ? (pictureUrl ?? null) : avatarUrlOf(avatarId);
  return { id, username, email, avatarUrl, twoFactorEnabled, createdAt: createdAtText };
}
