import type { IncomingMessage } from 'node:http';
import { type DomainError, fromConnectError } from '@latchkey/kit/errors/errors';
import type { Account, Session } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { type FinishOidcResponse, OidcService, type OidcSignedIn } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { checkNotSentHere, checkVisited } from '../authentication/cross-site.ts';
import type { SignInFailures } from '../authentication/sign-in-failures.ts';
import type { Clients } from '../clients.ts';
import { errors } from '../errors.ts';
import type { Limits } from '../limit/limits.ts';
import { defineRoute, Otherwise, type Route } from '../route/route.ts';
import { session, sessionCookieHeader, sessionTokenOf, setSessionCookie, toAccount } from './auth.ts';
import { OIDC_PATH, OidcCookies, readOidcCookie } from './oidc-cookies.ts';
import { issuerName, oidcLinkRoutes, type StartFlow } from './oidc-links.ts';
import { anyText, twoFactorCode } from './schemas.ts';

const TAG = 'Accounts';

/** Errors that a page can explain. */
const FOR_PEOPLE = new Set<DomainError['kind']>(['unauthenticated', 'forbidden', 'conflict', 'not_found', 'unavailable']);

/** Options of calls for which identity asks an issuer: it gives up a little earlier by itself. */
const ISSUER_CALL = { timeoutMs: 16_000 };

const answerPart = anyText.max(4_096).optional();
const callbackQuery = z.object({
  code: answerPart.meta({ description: 'The authorization code.', examples: ['SplxlOBeZQQYbYS6WxSbIA'] }),
  state: answerPart.meta({ description: 'What `startOidcSignIn` gave the issuer.', examples: ['af0ifjsldkj'] }),
  iss: answerPart.meta({ description: 'The identifier of the issuer.', examples: ['https://id.acme.example/realms/acme'] }),
  error: answerPart.meta({ description: 'Why the issuer refused; comes in place of `code`.', examples: ['access_denied'] }),
});
const callbackParams = z.object({ issuer: issuerName });

export interface OidcRouteOptions {
  readonly clients: Clients;
  readonly limits: Limits;
  readonly signInFailures: SignInFailures;
  /** Whether cookies are for HTTPS only. */
  readonly secureCookie: boolean;
  /** Where clients reach the service. */
  readonly publicUrl: string;
  /** Where browsers are sent in the end; undefined means an envelope instead. */
  readonly returnUrl: string | undefined;
}

/** Sign-in by OpenID Connect (decisions 4). */
export function oidcRoutes(options: OidcRouteOptions): Route[] {
  const { clients, limits, secureCookie, publicUrl } = options;
  const base = `${publicUrl.replace(/\/+$/, '')}${OIDC_PATH}`;
  const ownOrigins = new Set([publicUrl, options.returnUrl ?? publicUrl].map((url) => new URL(url).origin));
  // As identity writes it, which compares what browsers come back to with where it sent them.
  const redirectUri = new URL(`${base}/callback`).href;
  const cookies = new OidcCookies({ secure: secureCookie, path: new URL(base).pathname });
  const start: StartFlow = async (reply, request) => {
    const started = await clients.oidc.startOidc({ ...request, redirectUri }, ISSUER_CALL);
    cookies.set(reply, 'oidc_flow', started.flow, started.expiresAt);
    return started.authorizationUrl;
  };
  return [
    defineRoute({
      method: 'GET',
      url: `${OIDC_PATH}/start`,
      operationId: 'startOidcSignIn',
      access: 'public',
      tag: TAG,
      summary: 'Sign in by OpenID Connect',
      description: [
        'For browsers: sends them to the issuer, which sends them back to the callback within 10 minutes.',
        'A browser that a page of another site sends here is rejected, unless that is `OIDC_RETURN_URL`.',
      ].join(' '),
      limit: { limit: limits.oidcVisits, per: 'ip' },
      query: z.object({ issuer: issuerName }),
      redirects: {
        when: 'To the issuer; or to `OIDC_RETURN_URL`, with `error`, where that is set and the issuer is unknown or does not answer.',
        always: true,
      },
      failures: ['csrf_invalid', 'route_not_found'],
      message: 'Sign-in begun.',
      admit: (req) => checkNotSentHere(req, ownOrigins),
      handle: async ({ query: { issuer }, reply }) => {
        try {
          return reply.redirect(await start(reply, { issuer }));
        } catch (err) {
          return sendBack(reply, options.returnUrl, err);
        }
      },
    }),
    ...callbackRoutes(options, cookies, redirectUri),
    completeRoute(options, cookies),
    ...oidcLinkRoutes(options, start),
  ];
}

function callbackRoutes(options: OidcRouteOptions, cookies: OidcCookies, redirectUri: string): Route[] {
  const { clients, limits, returnUrl } = options;
  const end = async (reply: FastifyReply, { outcome }: FinishOidcResponse, clientIp: string) => {
    cookies.clear(reply, 'oidc_flow');
    switch (outcome.case) {
      case 'signedIn':
        return openSession(options, reply, outcome.value, clientIp);
      case 'linked':
        return new Otherwise({ account: toAccount(outcome.value.account as Account), csrfToken: outcome.value.csrfToken });
      case 'pending':
        cookies.set(reply, 'oidc_pending', outcome.value.pending, outcome.value.expiresAt);
        throw errors.two_factor_required();
      default:
        throw new Error('identity answered no outcome');
    }
  };
  const comeBack = async ({ query: { code, state, iss, error }, raw, clientIp, reply }: ComingBack, place: string) => {
    // The address has the code in it.
    reply.header('referrer-policy', 'no-referrer');
    const answer = definedOf({ code, state, iss, error });
    const browser = { flow: readOidcCookie(raw, 'oidc_flow'), redirectUri: place, sessionToken: sessionTokenOf(raw) };
    try {
      const data = await end(reply, await clients.oidc.finishOidc({ ...answer, ...browser }, ISSUER_CALL), clientIp);
      return returnUrl === undefined ? data : reply.redirect(returnUrl);
    } catch (err) {
      return sendBack(reply, returnUrl, err);
    }
  };
  const both = {
    method: 'GET',
    access: 'public',
    tag: TAG,
    description: [
      'Where the issuer sends browsers. Opens a session, as sign-in does, or ends the linking of an account.',
      'An account with two-factor authentication on gets 401 `two_factor_required`: `complete` then takes the code.',
      'Accounts are found by the id of the person at the issuer, never by the email: if an account has it, 409 `account_exists`.',
    ].join(' '),
    limit: { limit: limits.oidcVisits, per: 'ip' },
    query: callbackQuery,
    data: session,
    redirects: { when: 'To `OIDC_RETURN_URL`, where that is set; `error` in it is the `code` of an error.', always: false },
    failures: ['csrf_invalid', OidcService.method.finishOidc, 'two_factor_required'],
    message: 'Signed in.',
    otherMessage: 'Linked.',
    admit: checkVisited,
  } as const;
  return [
    defineRoute({
      ...both,
      url: `${OIDC_PATH}/callback`,
      operationId: 'finishOidcSignIn',
      summary: 'Come back from the only OpenID Connect issuer',
      handle: (request) => comeBack(request, redirectUri),
    }),
    defineRoute({
      ...both,
      url: `${OIDC_PATH}/callback/:issuer`,
      operationId: 'finishOidcSignInAtIssuer',
      summary: 'Come back from one of several OpenID Connect issuers',
      params: callbackParams,
      handle: (request) => comeBack(request, `${redirectUri}/${request.params.issuer}`),
    }),
  ];
}

/** A browser that an issuer has sent back. */
interface ComingBack {
  readonly query: z.output<typeof callbackQuery>;
  readonly raw: IncomingMessage;
  readonly clientIp: string;
  readonly reply: FastifyReply;
}

function completeRoute(options: OidcRouteOptions, cookies: OidcCookies): Route {
  const { clients, limits } = options;
  return defineRoute({
    method: 'POST',
    url: `${OIDC_PATH}/complete`,
    operationId: 'completeOidcSignIn',
    access: 'public',
    tag: TAG,
    summary: 'End a sign-in by OpenID Connect with a code',
    description: 'For accounts with two-factor authentication on, within 10 minutes after the callback and in the same browser.',
    limit: { limit: limits.signIn, per: 'ip' },
    body: z.strictObject({ code: twoFactorCode.meta({ description: 'Code of the second factor, or a recovery code.' }) }),
    examples: { code: { code: '123456' } },
    data: session,
    successHeaders: sessionCookieHeader,
    failures: [OidcService.method.completeOidc],
    message: 'Signed in.',
    handle: async ({ body: { code }, raw, clientIp, reply }) => {
      const pending = readOidcCookie(raw, 'oidc_pending');
      const { signedIn } = await clients.oidc.completeOidc({ pending, code, previousSessionToken: sessionTokenOf(raw) });
      cookies.clear(reply, 'oidc_pending');
      return openSession(options, reply, signedIn as OidcSignedIn, clientIp);
    },
  });
}

/** Sets the cookie of a new session, and returns what sign-in does. Its network is known from now on, for passwords too. */
async function openSession(options: OidcRouteOptions, reply: FastifyReply, opened: OidcSignedIn, clientIp: string) {
  const account = toAccount(opened.account as Account);
  await options.signInFailures.remember(account.email, clientIp);
  setSessionCookie(reply, options.secureCookie, opened.session as Session);
  return { account, csrfToken: opened.session?.csrfToken };
}

/** Redirects a browser to the return URL with the code of an error. Throws the error if there is no such URL, or people cannot act on it. */
function sendBack(reply: FastifyReply, returnUrl: string | undefined, err: unknown): FastifyReply {
  const known = fromConnectError(err);
  if (returnUrl === undefined || !known || !FOR_PEOPLE.has(known.kind)) throw err;
  return reply.redirect(withError(returnUrl, known.code));
}

function withError(returnUrl: string, code: string): string {
  const url = new URL(returnUrl);
  url.searchParams.set('error', code);
  return url.href;
}

function definedOf(answer: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const entries = Object.entries(answer).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries);
}
