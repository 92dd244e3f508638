import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type TestClaims = Readonly<Record<string, unknown>>;

export interface TestToken {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: TestClaims;
  readonly key: KeyObject;
}

export type Answerer = (req: IncomingMessage, res: ServerResponse, body: string) => void;

/** Faults of an issuer under test. Tests change it as they like. */
export interface IssuerBehaviour {
  claims: TestClaims;
  /** Claims of UserInfo besides the subject; undefined for no such endpoint. */
  userInfo: TestClaims | undefined;
  metadata: Readonly<Record<string, unknown>>;
  forge: (token: TestToken) => TestToken;
  answers: Record<string, Answerer>;
  reusesCodes: boolean;
}

/** An OpenID Connect issuer on loopback that may lie. */
export interface TestIssuer extends IssuerBehaviour {
  readonly url: string;
  /** Paths asked for so far, the newest last. */
  readonly asked: string[];
  /** Codes that were redeemed: what was sent for them, and what was answered. */
  readonly redeemed: Array<Readonly<Record<string, string>>>;
  /** Settings that make it an issuer of the service, called by that name. */
  env(name?: string): Record<string, string>;
  /** Signs the person of `claims` in; returns what the browser comes back with. */
  authorize(authorizationUrl: string): { code: string; state: string; iss: string };
  reset(): void;
  stop(): Promise<void>;
}

export const CLIENT_ID = 'a-client';
export const CLIENT_SECRET = 'a-client-secret-of-one-service';
export const REDIRECT_URI = 'https://latchkey.test/api/v1/auth/oidc/callback';

interface Grant {
  readonly claims: TestClaims;
  readonly nonce: string | null;
  readonly challenge: string | null;
  readonly redirectUri: string | null;
}

const honest = (): IssuerBehaviour => ({
  claims: { sub: randomUUID() },
  userInfo: undefined,
  metadata: {},
  forge: (token) => token,
  answers: {},
  reusesCodes: false,
});

export async function startTestIssuer(): Promise<TestIssuer> {
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const grants = new Map<string, Grant>();
  const server = createServer((req, res) => void handle(req, res));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer: TestIssuer = {
    ...honest(),
    url,
    asked: [],
    redeemed: [],
    env: (name = 'test') => ({
      OIDC_ISSUERS: name,
      [`OIDC_${name.toUpperCase()}_ISSUER`]: url,
      [`OIDC_${name.toUpperCase()}_CLIENT_ID`]: CLIENT_ID,
      [`OIDC_${name.toUpperCase()}_CLIENT_SECRET`]: CLIENT_SECRET,
    }),
    authorize(authorizationUrl) {
      const query = new URL(authorizationUrl).searchParams;
      const code = randomUUID();
      const [nonce, challenge, redirectUri] = [query.get('nonce'), query.get('code_challenge'), query.get('redirect_uri')];
      grants.set(code, { claims: issuer.claims, nonce, challenge, redirectUri });
      return { code, state: query.get('state') ?? '', iss: url };
    },
    reset: () => void Object.assign(issuer, honest()),
    stop: () => stop(server),
  };

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = new URL(req.url ?? '', url).pathname;
    const body = await readBody(req);
    issuer.asked.push(path);
    const own: Record<string, Answerer> = {
      '/.well-known/openid-configuration': () => sendJson(res, 200, metadataOf(issuer)),
      '/jwks': () => sendJson(res, 200, { keys: [{ ...key.publicKey.export({ format: 'jwk' }), kid: 'a', use: 'sig' }] }),
      '/token': () => answerToken(req, res, body),
      '/userinfo': () => sendJson(res, 200, { sub: issuer.claims.sub, ...issuer.userInfo }),
    };
    const answer = issuer.answers[path] ?? own[path];
    if (answer) answer(req, res, body);
    else sendJson(res, 404, {});
  }

  function answerToken(req: IncomingMessage, res: ServerResponse, body: string): void {
    const form = new URLSearchParams(body);
    const code = form.get('code') ?? '';
    const grant = grants.get(code);
    if (!issuer.reusesCodes) grants.delete(code);
    const credential = Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64');
    const basic = decodeURIComponent(Buffer.from((req.headers.authorization ?? '').slice(6), 'base64').toString());
    if (Buffer.from(basic).toString('base64') !== credential) {
      sendJson(res, 401, { error: 'invalid_client' });
      return;
    }
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const proven = grant?.challenge === challenge && grant.redirectUri === form.get('redirect_uri');
    if (!grant || !proven) {
      sendJson(res, 400, { error: 'invalid_grant' });
      return;
    }
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: url, aud: CLIENT_ID, iat: now, exp: now + 60, nonce: grant.nonce, ...grant.claims };
    const token = issuer.forge({ header: { alg: 'RS256', kid: 'a' }, claims, key: key.privateKey });
    const tokens = { access_token: randomUUID(), refresh_token: randomUUID(), id_token: toJwt(token) };
    issuer.redeemed.push({ ...Object.fromEntries(form), ...tokens });
    sendJson(res, 200, { ...tokens, token_type: 'Bearer', expires_in: 60 });
  }
  return issuer;
}

function metadataOf({ url, userInfo, metadata }: TestIssuer): object {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/jwks`,
    ...(userInfo && { userinfo_endpoint: `${url}/userinfo` }),
    authorization_response_iss_parameter_supported: true,
    ...metadata,
  };
}

/** Signs a token; with `alg` none its signature is empty. */
function toJwt({ header, claims, key }: TestToken): string {
  const [head, payload] = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  const signature = header.alg === 'none' ? '' : sign('sha256', Buffer.from(`${head}.${payload}`), key).toString('base64url');
  return `${head}.${payload}.${signature}`;
}

export function sendJson(res: ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function readBody(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
