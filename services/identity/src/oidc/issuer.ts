import type { Logger } from '@latchkey/kit/logger';
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientError,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  type CustomFetch,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  type IDToken,
  None,
} from 'openid-client';
import { type Claims, isSparse } from './claims.ts';
import { type IssuerStep, isRejectedByIssuer, toRefusal } from './issuer-failure.ts';
import { IssuerCallError } from './issuer-fetch.ts';
import { checkMetadata } from './issuer-metadata.ts';
import { type IssuerSettings, isLoopbackHttp } from './issuer-settings.ts';
import type { Flow } from './sealed.ts';

/** What an issuer says of itself is believed for so long. Its keys are believed for 5 minutes, by openid-client. */
const METADATA_LIFETIME_MS = 60 * 60_000;
/** All that one request asks of an issuer is to be answered by then. The gateway waits a little longer. */
const STEP_MS_MAX = 10_000;
/** How far the clock of an issuer may be ahead where it issues a token, in seconds. */
const ISSUED_AHEAD_S_MAX = 60;

/** What the issuer sent a browser back with. */
export interface IssuerAnswer {
  readonly code: string | undefined;
  readonly state: string | undefined;
  readonly iss: string | undefined;
  readonly error: string | undefined;
}

/** What issuers are asked with. */
export interface IssuerOptions {
  readonly fetch: CustomFetch;
  /** Longest wait for one answer, in milliseconds. */
  readonly callTimeoutMs: number;
  readonly clock: () => Date;
  readonly logger: Logger;
}

/** An issuer that is configured. Both functions throw `oidc_issuer_unavailable`, and nothing that an issuer says is in what they throw. */
export interface Issuer {
  /** Its identifier. */
  readonly url: URL;
  /** Where a browser has to go to sign in. */
  authorizationUrl(flow: Flow): Promise<string>;
  /**
   * Redeems the code of an answer, and answers the claims of the ID token and those of the UserInfo endpoint. Everything that OpenID Connect Core 3.1.3
   * asks for is checked, the signature included.
   *
   * @param use called once the issuer is known to be there, and right before the code is sent; what it throws ends it all
   * @throws `oidc_refused`
   */
  redeem(flow: Flow, answer: IssuerAnswer, use: () => Promise<void>): Promise<readonly [idToken: Claims, userInfo: Claims]>;
}

/** Opens an issuer. It is not asked for anything before the first use. */
export function createIssuer(settings: IssuerSettings, options: IssuerOptions): Issuer {
  const { name } = settings;
  const refuseAs = (step: IssuerStep) => (err: unknown) => {
    throw toRefusal(err, options.logger, name, step);
  };
  const configuration = rememberConfiguration(settings, options);
  const configured = () => withinTime(configuration.get()).catch(refuseAs('discovery'));
  return {
    url: settings.url,
    async authorizationUrl(flow) {
      const config = await configured();
      const challenge = await calculatePKCECodeChallenge(flow.verifier);
      return toAuthorizationUrl(config, settings, flow, challenge);
    },
    async redeem(flow, answer, use) {
      const config = await configured();
      await use();
      return withinTime(redeem(config, flow, answer)).catch((err: unknown) => {
        // Its endpoints or keys may be wrong: the next sign-in asks for both again.
        if (!isRejectedByIssuer(err)) configuration.forget(config);
        return refuseAs('sign-in')(err);
      });
    },
  };
}

/** A configuration and the keys that openid-client stores with it. */
interface RememberedConfiguration {
  get(): Promise<Configuration>;
  /** Forgets that configuration, if it is still the remembered one. */
  forget(config: Configuration): void;
}

/** Discovers the issuer, once for all who ask at a time, and again when that is too long ago. What failed is not remembered. */
function rememberConfiguration(settings: IssuerSettings, options: IssuerOptions): RememberedConfiguration {
  let known: { readonly config: Configuration; readonly untilMs: number } | undefined;
  let asking: Promise<Configuration> | undefined;
  const ask = async () => {
    const untilMs = options.clock().getTime() + METADATA_LIFETIME_MS;
    const config = await discover(settings, options);
    known = { config, untilMs };
    return config;
  };
  return {
    async get() {
      if (known && known.untilMs > options.clock().getTime()) return known.config;
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      return asking;
    },
    forget(config) {
      if (known?.config === config) known = undefined;
    },
  };
}

async function discover({ url, clientId, clientSecret }: IssuerSettings, options: IssuerOptions): Promise<Configuration> {
  const config = await discovery(url, clientId, {}, authenticationBy(clientSecret), {
    [customFetch]: options.fetch,
    timeout: options.callTimeoutMs / 1000,
    ...(isLoopbackHttp(url) && { execute: [allowInsecureRequests] }),
  });
  checkMetadata(config.serverMetadata());
  // Without this, the connection to the token endpoint alone would vouch for the token.
  enableNonRepudiationChecks(config);
  return config;
}

/** How the client shows its secret: as most issuers want it, or as the issuer says (OpenID Connect Discovery, 3). */
function authenticationBy(clientSecret: string | undefined): ClientAuth {
  if (clientSecret === undefined) return None();
  const [basic, post] = [ClientSecretBasic(clientSecret), ClientSecretPost(clientSecret)];
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest);
  };
}

function toAuthorizationUrl(config: Configuration, { scopes }: IssuerSettings, flow: Flow, challenge: string): string {
  return buildAuthorizationUrl(config, {
    redirect_uri: flow.redirectUri,
    scope: scopes,
    state: flow.state,
    nonce: flow.nonce,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  }).href;
}

async function redeem(config: Configuration, flow: Flow, answer: IssuerAnswer): Promise<readonly [Claims, Claims]> {
  const url = new URL(flow.redirectUri);
  for (const [name, value] of Object.entries(answer)) if (value !== undefined) url.searchParams.set(name, value);
  const tokens = await authorizationCodeGrant(config, url, {
    expectedState: flow.state,
    expectedNonce: flow.nonce,
    pkceCodeVerifier: flow.verifier,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  if (!claims) throw new IssuerCallError('there is no ID token');
  checkIssuedAt(claims);
  if (config.serverMetadata().userinfo_endpoint === undefined || !isSparse(claims)) return [claims, {}];
  return [claims, await fetchUserInfo(config, tokens.access_token, claims.sub)];
}

/** openid-client checks when a token ends, and not when it was issued. */
function checkIssuedAt({ iat }: IDToken): void {
  if (iat <= Date.now() / 1_000 + ISSUED_AHEAD_S_MAX) return;
  throw Object.assign(new ClientError('the ID token is issued in the future'), { code: 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED' });
}

/** What `promise` resolves to, unless it takes too long. */
async function withinTime<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new IssuerCallError('it took too long')), STEP_MS_MAX);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
