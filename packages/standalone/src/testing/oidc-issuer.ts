import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider, { type AccountClaims, type Configuration } from 'oidc-provider';
import { CookieJar } from './cookie-jar.ts';
import { createIssuerStore } from './oidc-issuer-store.ts';

/** Where the instances of these tests say that they are reached, so that the issuer can know before they are started. */
export const PUBLIC_URL = 'https://latchkey.test';
const REDIRECT_URI = `${PUBLIC_URL}/api/v1/auth/oidc/callback`;
export const CLIENT_SECRET = 'a-client-secret-that-must-stay-here';

/** What somebody at the issuer is known by. */
export type Somebody = Omit<AccountClaims, 'sub'>;

/** What travelled between the service and the issuer, which nobody else is to see. */
export interface IssuerSecrets {
  readonly code: string;
  readonly verifier: string;
  readonly idToken: string;
  readonly accessToken: string;
}

/** A real OpenID Connect issuer. */
export interface OidcIssuer {
  readonly url: string;
  /** Settings that make it an issuer called `corp`. */
  readonly env: Readonly<Record<string, string>>;
  /** Secrets of every grant so far. */
  readonly secrets: readonly IssuerSecrets[];
  /** Makes or changes somebody, by the name that they sign in with there. */
  know(login: string, claims: Somebody): void;
  /**
   * Does what a browser does from the authorization URL until it is sent back: signs in, agrees to everything, or turns back at once.
   *
   * @returns the query that the service is called back with
   */
  visit(authorizationUrl: string, login: string, turnBack?: boolean): Promise<string>;
  stop(): Promise<void>;
}

/** How long anything that it gives is good for, in seconds. */
const GRANT_S = 600;

function signingKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' };
}

/** Starts an issuer on loopback. The caller stops it. */
export async function startOidcIssuer(): Promise<OidcIssuer> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const people = new Map<string, Somebody>();
  const secrets: IssuerSecrets[] = [];
  const provider = new Provider(url, {
    adapter: createIssuerStore(),
    clients: [{ client_id: 'latchkey', client_secret: CLIENT_SECRET, redirect_uris: [REDIRECT_URI, `${REDIRECT_URI}/corp`] }],
    claims: { email: ['email', 'email_verified'], profile: ['preferred_username', 'name', 'picture'] },
    cookies: { keys: ['a key of the cookies of this issuer'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `${SIGN_IN_PATH}${uid}` },
    loadExistingGrant: agreeToEverything,
    findAccount: (_ctx, sub) => ({ accountId: sub, claims: async () => ({ sub, ...people.get(sub) }) }),
    jwks: { keys: [signingKey()] },
    pkce: { required: () => true },
    ttl: {
      AccessToken: GRANT_S,
      AuthorizationCode: GRANT_S,
      Grant: GRANT_S,
      IdToken: GRANT_S,
      Interaction: GRANT_S,
      Session: GRANT_S,
    },
  });
  provider.on('grant.success', ({ oidc, body }) => {
    const { id_token: idToken, access_token: accessToken } = body as Record<string, string>;
    const { code, code_verifier: verifier } = oidc.params as Record<string, string>;
    secrets.push({ code, verifier, idToken, accessToken } as IssuerSecrets);
  });
  const answer = provider.callback();
  server.on('request', (req, res) => void (req.url?.startsWith(SIGN_IN_PATH) ? endSignIn(provider, req, res) : answer(req, res)));
  return {
    url,
    env: {
      PUBLIC_URL,
      OIDC_ISSUERS: 'corp',
      OIDC_CORP_ISSUER: url,
      OIDC_CORP_CLIENT_ID: 'latchkey',
      OIDC_CORP_CLIENT_SECRET: CLIENT_SECRET,
    },
    secrets,
    know: (login, claims) => void people.set(login, claims),
    visit,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Where people sign in. */
const SIGN_IN_PATH = '/sign-in/';

/** Somebody signs in by the name that the query has, or turns back without one. */
async function endSignIn(provider: Provider, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const login = new URL(req.url ?? '', provider.issuer).searchParams.get('login');
  await provider.interactionFinished(req, res, login === null ? { error: 'access_denied' } : { login: { accountId: login } });
}

/** Whoever is signed in has agreed to all that is asked for. */
const agreeToEverything: NonNullable<Configuration['loadExistingGrant']> = async ({ oidc }) => {
  const grant = new oidc.provider.Grant({ clientId: oidc.client?.clientId, accountId: oidc.session?.accountId });
  grant.addOIDCScope([...oidc.requestParamScopes].join(' '));
  await grant.save();
  return grant;
};

/** Redirects from the first to the last, with some to spare. */
const STEPS_MAX = 8;

async function visit(authorizationUrl: string, login: string, turnBack = false): Promise<string> {
  const jar = new CookieJar();
  let url = new URL(authorizationUrl);
  for (let step = 0; step < STEPS_MAX; step += 1) {
    if (url.href.startsWith(REDIRECT_URI)) return url.search.slice(1);
    if (url.pathname.startsWith(SIGN_IN_PATH) && !turnBack) url.searchParams.set('login', login);
    const response = await fetch(url, { redirect: 'manual', headers: { cookie: jar.header(url.pathname) } });
    jar.take(response.headers);
    const location = response.headers.get('location');
    if (location === null) throw new Error(`The issuer answers ${response.status}: ${(await response.text()).slice(0, 500)}`);
    url = new URL(location, url);
  }
  throw new Error('The issuer does not send the browser back');
}
