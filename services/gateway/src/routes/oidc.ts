import type { IncomingMessage } from 'node:http';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type DomainError, fromConnectError } from '@latchkey/kit/errors/errors';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import type { FinishOidcResponse, OidcSignedIn, StartOidcRequestSchema } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { OIDC_PATH, readCookie } from '../authentication/cookies.ts';
import { readSessionClient } from '../authentication/credential.ts';
import { checkNavigation, checkReferringSite } from '../authentication/csrf.ts';
import { errors } from '../errors.ts';
import { AlternativeSuccess, defineRoute, type RouteContext, type RouteRequest } from '../routing/route.ts';
import { issuerName, textUpTo, twoFactorCode } from '../routing/schemas.ts';
import { openSession, session, sessionCookieHeader, toAccount } from './auth.ts';

const FOR_PEOPLE = new Set<DomainError['kind']>([
  'unauthenticated',
  'forbidden',
  'conflict',
  'not_found',
  'unavailable',
  'unknown',
]);

const ISSUER_CALL = { timeoutMs: DEADLINES_MS.gatewayIssuer };

const answerPart = textUpTo(4_096).optional();
const callbackQuery = z.object({
  code: answerPart.meta({ description: 'The authorization code.', examples: ['SplxlOBeZQQYbYS6WxSbIA'] }),
  state: answerPart.meta({ description: 'What `startOidcSignIn` gave the issuer.', examples: ['af0ifjsldkj'] }),
  iss: answerPart.meta({ description: 'The identifier of the issuer.', examples: ['https://id.acme.example/realms/acme'] }),
  error: answerPart.meta({
    description: 'Reason of a rejection by the issuer; comes in place of `code`.',
    examples: ['access_denied'],
  }),
});

export function oidcRoutes(context: RouteContext) {
  const { clients, limits, cookies, publicUrl, oidcReturnUrl = publicUrl } = context;
  const ownOrigins = new Set([publicUrl, oidcReturnUrl].map((url) => new URL(url).origin));
  return {
    startOidcSignIn: defineRoute(`GET ${OIDC_PATH}/start`, 'public', {
      summary: 'Sign in by OpenID Connect',
      description: [
        'For browsers: sends them to the issuer, which sends them back to the callback within 10 minutes.',
        'A browser that a page of another site sends here is rejected, unless that is `OIDC_RETURN_URL`.',
      ].join(' '),
      limit: { limit: limits.oidcVisits, per: 'ip' },
      query: z.object({ issuer: issuerName }),
      redirects: {
        when: 'To the issuer; if that is unknown or does not answer, as the callback, with `error`.',
        always: true,
      },
      failures: ['csrf_invalid', 'route_not_found'],
      message: 'Sign-in begun.',
      checkHead: (req) => checkReferringSite(req, ownOrigins),
      handle: async ({ query: { issuer }, raw, reply }) => {
        try {
          return reply.redirect(await startFlow(context, reply, { issuer }));
        } catch (err) {
          return redirectError(returnUrlFor(context, raw), reply, err);
        }
      },
    }),
    ...callbackRoutes(context),
    completeOidcSignIn: defineRoute(`POST ${OIDC_PATH}/complete`, 'public', {
      summary: 'End a sign-in by OpenID Connect with a code',
      description:
        'For accounts with two-factor authentication on, within 10 minutes after the callback and in the same browser.',
      limit: { limit: limits.signIn, per: 'ip' },
      body: z.strictObject({ code: twoFactorCode.meta({ description: 'Code of the second factor, or a recovery code.' }) }),
      examples: { code: { code: '123456' } },
      data: session,
      successHeaders: sessionCookieHeader,
      failures: ['completeOidc'],
      message: 'Signed in.',
      handle: async ({ body: { code }, raw, clientIp, reply }) => {
        const pending = readCookie(raw, 'oidc_pending') ?? '';
        const request = { pending, code, ...readSessionClient(raw) };
        const signedIn = (await clients.oidc.completeOidc(request)).signedIn as OidcSignedIn;
        cookies.clear(reply, 'oidc_pending');
        return openSession(context, { reply, clientIp }, signedIn);
      },
    }),
  };
}

export async function startFlow(
  { clients, cookies, publicUrl }: RouteContext,
  reply: FastifyReply,
  request: Omit<MessageInitShape<typeof StartOidcRequestSchema>, '$typeName' | '$unknown' | 'redirectUri'>,
): Promise<string> {
  const redirectUri = redirectUriOf(publicUrl);
  const { flow, expiresAt, authorizationUrl } = await clients.oidc.startOidc({ ...request, redirectUri }, ISSUER_CALL);
  cookies.set(reply, 'oidc_flow', flow, expiresAt);
  return authorizationUrl;
}

/** In the form that identity uses, which compares it with the one that the flow started with. */
function redirectUriOf(publicUrl: string): string {
  return new URL(`${publicUrl.replace(/\/+$/, '')}${OIDC_PATH}/callback`).href;
}

function callbackRoutes(context: RouteContext) {
  const { clients, limits, publicUrl } = context;
  const redirectUri = redirectUriOf(publicUrl);
  const finish = async ({ query, raw, clientIp, reply }: CallbackRequest, usedUri: string) => {
    // The URL of this page contains the code.
    reply.header('referrer-policy', 'no-referrer');
    const flow = readCookie(raw, 'oidc_flow') ?? '';
    const { previousSessionToken: sessionToken, userAgent } = readSessionClient(raw);
    const browser = { flow, redirectUri: usedUri, sessionToken, userAgent };
    const returnUrl = returnUrlFor(context, raw);
    try {
      const { outcome } = await clients.oidc.finishOidc({ ...(query as Record<string, string>), ...browser }, ISSUER_CALL);
      const data = await applyOutcome(context, { reply, clientIp }, outcome);
      return returnUrl === undefined ? data : reply.redirect(returnUrl);
    } catch (err) {
      return redirectError(returnUrl, reply, err);
    }
  };
  const both = {
    description: [
      'Where the issuer sends browsers. Opens a session, as sign-in does, or ends the linking of an account.',
      'An account with two-factor authentication on gets 401 `two_factor_required`: `complete` then takes the code.',
      'Accounts are found by the id of the person at the issuer, never by the email: if an account has it, 409 `account_exists`.',
    ].join(' '),
    limit: { limit: limits.oidcVisits, per: 'ip' },
    query: callbackQuery,
    data: session,
    redirects: {
      when: 'To `OIDC_RETURN_URL`, else browsers to the dashboard, unless it is off; `error` in it is the `code` of an error.',
      always: false,
    },
    failures: ['csrf_invalid', 'finishOidc', 'two_factor_required'],
    message: 'Signed in.',
    alternativeMessage: 'Linked.',
    checkHead: checkNavigation,
  } as const;
  return {
    finishOidcSignIn: defineRoute(`GET ${OIDC_PATH}/callback`, 'public', {
      ...both,
      summary: 'Come back from the only OpenID Connect issuer',
      handle: (request) => finish(request, redirectUri),
    }),
    finishOidcSignInAtIssuer: defineRoute(`GET ${OIDC_PATH}/callback/:issuer`, 'public', {
      ...both,
      summary: 'Come back from one of several OpenID Connect issuers',
      params: z.object({ issuer: issuerName }),
      handle: (request) => finish(request, `${redirectUri}/${request.params.issuer}`),
    }),
  };
}

type CallbackRequest = Pick<
  RouteRequest<'public', undefined, unknown, z.output<typeof callbackQuery>, unknown>,
  'query' | 'raw' | 'clientIp' | 'reply'
>;

async function applyOutcome(
  context: RouteContext,
  client: Pick<CallbackRequest, 'reply' | 'clientIp'>,
  outcome: FinishOidcResponse['outcome'],
) {
  const { cookies } = context;
  cookies.clear(client.reply, 'oidc_flow');
  switch (outcome.case) {
    case 'signedIn':
      return openSession(context, client, outcome.value);
    case 'linked':
      return new AlternativeSuccess({ account: toAccount(outcome.value.account), csrfToken: outcome.value.csrfToken });
    case 'pending':
      cookies.set(client.reply, 'oidc_pending', outcome.value.pending, outcome.value.expiresAt);
      throw errors.two_factor_required();
    default:
      throw new Error('identity returned no outcome');
  }
}

/** Target of a browser's redirect: programs, which accept no HTML, get the envelope. */
function returnUrlFor({ oidcReturnUrl, dashboardUrl }: RouteContext, { headers }: IncomingMessage): string | undefined {
  if (oidcReturnUrl !== undefined || dashboardUrl === undefined) return oidcReturnUrl;
  return headers.accept?.includes('text/html') ? `${dashboardUrl}/sign-in` : undefined;
}

/** Redirects to the return URL, if any, with the code of an error for people. Else throws it. */
function redirectError(returnUrl: string | undefined, reply: FastifyReply, err: unknown): FastifyReply {
  const known = fromConnectError(err);
  if (returnUrl === undefined || !known || !FOR_PEOPLE.has(known.kind)) throw err;
  const url = new URL(returnUrl);
  url.searchParams.set('error', known.code);
  return reply.redirect(url.href);
}
