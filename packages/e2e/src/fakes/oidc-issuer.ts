import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider, { type AccountClaims, type Configuration } from 'oidc-provider';
import { CookieJar } from '../client/cookie-jar.ts';

/** Public URL of instances: constant, so that the issuer knows it before they start. */
export const PUBLIC_URL = 'https://latchkey.test';
const REDIRECT_URI = `${PUBLIC_URL}/api/v1/auth/oidc/callback`;
const CLIENT_SECRET = 'a-client-secret-that-must-stay-here';
const SIGN_IN_PATH = '/sign-in/';
const GRANT_S = 600;
const REDIRECTS_MAX = 8;

export type UserClaims = Omit<AccountClaims, 'sub'>;

export interface OidcIssuer {
  readonly url: string;
  /** Settings that make it an issuer called `corp`. */
  readonly env: Readonly<Record<string, string>>;
  /** Creates or changes a user, by the name that they sign in with there. */
  know(login: string, claims: UserClaims): void;
  /**
   * Does what a browser does at the authorization URL: signs in and agrees, or turns back.
   *
   * @returns the query that the service is called back with
   */
  visit(authorizationUrl: string, login: string, turnBack?: boolean): Promise<string>;
  /** A JWT of the service account `job`, as a job of a CI server has one. */
  tokenOfJob(audience: string): Promise<string>;
  stop(): Promise<void>;
}

/** Starts an issuer on loopback. The caller stops it. */
export async function startOidcIssuer(): Promise<OidcIssuer> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const users = new Map<string, UserClaims>();
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ttls = ['AccessToken', 'AuthorizationCode', 'ClientCredentials', 'Grant', 'IdToken', 'Interaction', 'Session'];
  const provider = new Provider(url, {
    clients: [
      { client_id: 'latchkey', client_secret: CLIENT_SECRET, redirect_uris: [REDIRECT_URI, `${REDIRECT_URI}/corp`] },
      {
        client_id: 'job',
        client_secret: CLIENT_SECRET,
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
      },
    ],
    claims: { email: ['email', 'email_verified'], profile: ['preferred_username', 'name', 'picture'] },
    cookies: { keys: ['a key of the cookies of this issuer'] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx, audience) => ({ ...{ scope: '', audience }, accessTokenFormat: 'jwt' }),
      },
    },
    interactions: { url: (_ctx, { uid }) => `${SIGN_IN_PATH}${uid}` },
    loadExistingGrant: agreeToEverything,
    findAccount: (_ctx, sub) => ({ accountId: sub, claims: async () => ({ sub, ...users.get(sub) }) }),
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' }] },
    pkce: { required: () => true },
    ttl: Object.fromEntries(ttls.map((name) => [name, GRANT_S])),
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
      TRUSTED_ISSUER_INTERNAL_HOSTS: new URL(url).host,
    },
    know: (login, claims) => void users.set(login, claims),
    visit,
    async tokenOfJob(resource) {
      const client = { client_id: 'job', client_secret: CLIENT_SECRET };
      const authorization = `Basic ${Buffer.from(Object.values(client).join(':')).toString('base64')}`;
      const body = new URLSearchParams({ grant_type: 'client_credentials', resource });
      const response = await fetch(`${url}/token`, { method: 'POST', headers: { authorization }, body });
      return ((await response.json()) as { readonly access_token: string }).access_token;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Signs in the user that the query names, or turns back without one. */
async function endSignIn(provider: Provider, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const login = new URL(req.url ?? '', provider.issuer).searchParams.get('login');
  await provider.interactionFinished(req, res, login === null ? { error: 'access_denied' } : { login: { accountId: login } });
}

const agreeToEverything: NonNullable<Configuration['loadExistingGrant']> = async ({ oidc }) => {
  const grant = new oidc.provider.Grant({ clientId: oidc.client?.clientId, accountId: oidc.session?.accountId });
  grant.addOIDCScope([...oidc.requestParamScopes].join(' '));
  await grant.save();
  return grant;
};

async function visit(authorizationUrl: string, login: string, turnBack = false): Promise<string> {
  const jar = new CookieJar();
  let url = new URL(authorizationUrl);
  for (let step = 0; step < REDIRECTS_MAX; step += 1) {
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
