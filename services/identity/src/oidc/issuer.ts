import { orRejectAfter } from '@latchkey/kit/concurrency/within';
import type { Logger } from '@latchkey/kit/log/logger';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import type { FinishOidcRequest } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import * as client from 'openid-client';
import { z } from 'zod';
import type { Claims } from './claims.ts';
import { createIssuerFetch, IssuerError, isRejectedByIssuer, SignInError, toDomainError } from './issuer-http.ts';
import { type IssuerSettings, isEndpoint, isLoopbackHttp } from './issuer-settings.ts';
import type { Flow } from './sealed-cookie.ts';

/** Calls to all issuers in one process, divided equally, so that a slow issuer blocks no other. */
const CALLS_MAX = 64;
/** openid-client caches keys for 5 minutes. */
const METADATA_LIFETIME_MS = 60 * 60_000;
/** Longest time that an issuer's clock may be ahead. */
const ISSUED_AHEAD_MAX_S = 60;

type IssuerResponse = Pick<FinishOidcRequest, 'code' | 'state' | 'iss' | 'error'>;

export interface IssuerOptions {
  readonly clock: () => Date;
  readonly logger: Logger;
  readonly callTimeoutMs?: number | undefined;
}

export function createIssuers(settings: readonly IssuerSettings[], options: IssuerOptions) {
  const concurrency = Math.max(1, Math.floor(CALLS_MAX / settings.length));
  return new Map(settings.map((issuer) => [issuer.name, createIssuer(issuer, options, createIssuerFetch(concurrency))]));
}

/** A configured issuer. Both functions throw `oidc_issuer_unavailable`. */
function createIssuer(settings: IssuerSettings, options: IssuerOptions, issuerFetch: client.CustomFetch) {
  const { clock, logger } = options;
  let known: { readonly config: client.Configuration; readonly untilMs: number } | undefined;
  let discovering: Promise<client.Configuration> | undefined;
  const discoverOnce = async () => {
    const untilMs = clock().getTime() + METADATA_LIFETIME_MS;
    const config = await discover(settings, issuerFetch, options.callTimeoutMs ?? DEADLINES_MS.issuer);
    known = { config, untilMs };
    return config;
  };
  const configured = async () => {
    if (known && known.untilMs > clock().getTime()) return known.config;
    discovering ??= discoverOnce().finally(() => {
      discovering = undefined;
    });
    return withTimeout(discovering).catch((err: unknown) => {
      throw toDomainError(err, logger, settings.name, 'discovery');
    });
  };
  return {
    url: settings.url,
    async authorizationUrl(flow: Flow): Promise<string> {
      const config = await configured();
      return client.buildAuthorizationUrl(config, {
        redirect_uri: flow.redirectUri,
        scope: settings.scopes,
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(flow.verifier),
        code_challenge_method: 'S256',
      }).href;
    },
    /**
     * Exchanges the code for claims of the ID token and, where that says little, of UserInfo, with
     * all checks of OpenID Connect Core 3.1.3, the signature included.
     * @param useUp called right before the code is sent, once the issuer is available
     * @throws `oidc_refused`
     */
    async redeem(flow: Flow, response: IssuerResponse, useUp: () => Promise<void>): Promise<readonly [Claims, Claims]> {
      const config = await configured();
      await useUp();
      return withTimeout(redeem(config, flow, response)).catch((err: unknown) => {
        // Its endpoints or keys may have changed: the next sign-in discovers both again.
        if (!isRejectedByIssuer(err) && known?.config === config) known = undefined;
        throw toDomainError(err, logger, settings.name, 'sign-in');
      });
    },
  };
}

const endpoint = z.string().refine(isEndpoint);
const names = z.array(z.string()).optional();

/** OpenID Connect Discovery, 3, and RFC 9207. openid-client checks the issuer. */
const metadataSchema = z.object({
  authorization_endpoint: endpoint,
  token_endpoint: endpoint,
  jwks_uri: endpoint,
  userinfo_endpoint: endpoint.optional(),
  id_token_signing_alg_values_supported: names,
  token_endpoint_auth_methods_supported: names,
  authorization_response_iss_parameter_supported: z.boolean().optional(),
});

async function discover({ url, clientId, clientSecret }: IssuerSettings, issuerFetch: client.CustomFetch, timeoutMs: number) {
  const config = await client.discovery(url, clientId, {}, authenticationBy(clientSecret), {
    [client.customFetch]: issuerFetch,
    timeout: timeoutMs / 1000,
    ...(isLoopbackHttp(url) && { execute: [client.allowInsecureRequests] }),
  });
  const { error } = metadataSchema.safeParse(config.serverMetadata());
  if (error) throw new IssuerError(`the metadata has no valid ${error.issues[0]?.path[0]?.toString()}`);
  // Makes openid-client verify the token's signature, beside the connection to the token endpoint.
  client.enableNonRepudiationChecks(config);
  return config;
}

/** Most issuers expect the secret in the Authorization header, some only in the body. */
function authenticationBy(clientSecret: string | undefined): client.ClientAuth {
  if (clientSecret === undefined) return client.None();
  const [basic, post] = [client.ClientSecretBasic(clientSecret), client.ClientSecretPost(clientSecret)];
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest);
  };
}

async function redeem(config: client.Configuration, flow: Flow, { code, state, iss, error }: IssuerResponse) {
  const url = new URL(flow.redirectUri);
  for (const [name, value] of Object.entries({ code, state, iss, error })) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  const tokens = await client.authorizationCodeGrant(config, url, {
    expectedState: flow.state,
    expectedNonce: flow.nonce,
    pkceCodeVerifier: flow.verifier,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  if (!claims) throw new IssuerError('there is no ID token');
  // openid-client checks when a token expires, but not when it was issued.
  const isAhead = claims.iat > Date.now() / 1_000 + ISSUED_AHEAD_MAX_S;
  if (isAhead) throw new SignInError('the ID token is issued in the future');
  // Many issuers put little in the token (OpenID Connect Core, 5.4).
  const isSparse = typeof claims.email !== 'string' || typeof claims.picture !== 'string';
  if (config.serverMetadata().userinfo_endpoint === undefined || !isSparse) return [claims, {}] as const;
  return [claims, await client.fetchUserInfo(config, tokens.access_token, claims.sub)] as const;
}

function withTimeout<T>(promise: Promise<T>): Promise<T> {
  return orRejectAfter(DEADLINES_MS.issuerStep, promise, () => new IssuerError('the issuer took too long'));
}
