import { hash } from 'node:crypto';
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { fromConnectError } from '@latchkey/kit/errors';
import { hasLength } from '@latchkey/kit/text';
import type { Account, Session, SignInResponse, SignUpResponse } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { stringifySetCookie } from 'cookie';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { SESSION_COOKIE } from '../authentication/credential.ts';
import type { Clients } from '../clients.ts';
import { denial } from '../limit/headers.ts';
import type { Limiter } from '../limit/limiter.ts';
import type { Limits } from '../limit/limits.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { anyText, idText, timestamp } from './schemas.ts';

const TAG = 'Accounts';

const account = z.object({
  id: idText,
  username: z.string(),
  email: z.string(),
  avatarUrl: z.string().nullable(),
  twoFactorEnabled: z.boolean(),
  createdAt: timestamp,
});

const session = z.object({ account, csrfToken: z.string().meta({ description: 'For the header `X-CSRF-Token`.' }) });

const signUpBody = z.strictObject({
  username: z.string().regex(/^[A-Za-z0-9_-]{3,32}$/),
  email: z.email().max(254),
  password: z
    .string()
    .refine((text) => hasLength(text.replaceAll('\0', ' '), 10, 128))
    .meta({ minLength: 10, maxLength: 128, description: '10 to 128 characters.' }),
});

const signInBody = z.strictObject({
  email: anyText.max(1_000),
  password: z.string().max(1_000),
  code: z.string().max(64).optional().meta({ description: 'Code of the second factor, for accounts that have one.' }),
});

/** What the routes of accounts work with. */
export interface AuthRouteOptions {
  readonly clients: Clients;
  readonly limiter: Limiter;
  readonly limits: Limits;
  /** Whether the session cookie is for HTTPS only. */
  readonly secureCookie: boolean;
}

/** Sign-up, sign-in, sign-out and the session (decisions 4). */
export function authRoutes({ clients, limiter, limits, secureCookie }: AuthRouteOptions): Route[] {
  const open = (reply: FastifyReply, opened: SignUpResponse | SignInResponse) => {
    setSessionCookie(reply, secureCookie, opened.session as Session);
    return { account: toAccount(opened.account as Account), csrfToken: opened.session?.csrfToken };
  };
  return [
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/sign-up',
      access: 'public',
      tag: TAG,
      summary: 'Create an account',
      description: 'Opens a session: the answer sets the session cookie.',
      limit: { limit: limits.signUp, per: 'ip' },
      body: signUpBody,
      data: session,
      failures: [403, 409],
      message: 'Signed up.',
      handle: async ({ body, call, reply }) => open(reply, await clients.accounts.signUp(body, call)),
    }),
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/sign-in',
      access: 'public',
      tag: TAG,
      summary: 'Sign in',
      description: 'Opens a session: the answer sets the session cookie. A wrong email and a wrong password are the same answer.',
      limit: { limit: limits.signIn, per: 'ip' },
      body: signInBody,
      data: session,
      failures: [401, 403],
      message: 'Signed in.',
      handle: async ({ body: { email, password }, call, reply }) => {
        const failures = { limit: limits.signInFailures, subject: emailDigest(email) };
        const standing = await limiter.hit(failures);
        if (!standing.allowed) throw denial(standing);
        try {
          const opened = await clients.accounts.signIn({ email, password }, call);
          await limiter.refund(failures);
          return open(reply, opened);
        } catch (err) {
          if (fromConnectError(err)?.reason !== 'sign_in_failed') await limiter.refund(failures);
          throw err;
        }
      },
    }),
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/sign-out',
      access: 'session',
      tag: TAG,
      summary: 'Sign out',
      message: 'Signed out.',
      handle: async ({ principal, call, reply }) => {
        await clients.accounts.signOut({ accountId: principal.accountId, sessionId: principal.credentialId }, call);
        setSessionCookie(reply, secureCookie, undefined);
      },
    }),
    defineRoute({
      method: 'GET',
      url: '/api/v1/auth/session',
      access: 'session',
      tag: TAG,
      summary: 'Get the session',
      data: session,
      message: 'Successfully fetched session.',
      handle: async ({ principal, call }) => {
        const found = await clients.accounts.getAccount({ accountId: principal.accountId }, call);
        return { account: toAccount(found.account as Account), csrfToken: principal.csrfToken };
      },
    }),
  ];
}

/** Failures count for the email that was tried, in any case, whether or not it has an account. */
function emailDigest(email: string): string {
  return hash('sha256', email.trim().toLowerCase(), 'base64url');
}

/** Sets the cookie of a session for its absolute lifetime, or clears it. */
function setSessionCookie(reply: FastifyReply, secure: boolean, opened: Session | undefined): void {
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

function toAccount({ id, username, email, avatarUrl, twoFactorEnabled, createdAt }: Account) {
  const createdAtText = timestampDate(createdAt as Timestamp).toISOString();
  return { id, username, email, avatarUrl: avatarUrl ?? null, twoFactorEnabled, createdAt: createdAtText };
}
