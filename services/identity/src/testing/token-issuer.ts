import { randomUUID } from 'node:crypto';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';
import { afterAll, beforeEach } from 'vitest';
import { openTestIdentity } from './identity.ts';
import { sendJson, startTestIssuer } from './issuer.ts';
import { present, someAccountId } from './sample.ts';

export const AUDIENCE = 'https://latchkey.test';
export const SUBJECT = 'repo:acme/editor:environment:production';
export const CLAIMS = { repository: 'acme/editor', environment: 'production' };

export interface SigningKey {
  readonly jwk: JWK;
  readonly privateKey: CryptoKey;
}

export async function createSigningKey(alg = 'ES256'): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { jwk: { ...(await exportJWK(publicKey)), kid: randomUUID(), alg, use: 'sig' }, privateKey };
}

/** An issuer on loopback that signs tokens of jobs, and a service that may connect to it. */
export async function openTokenIssuer(env: Readonly<Record<string, string>> = {}) {
  const issuer = await startTestIssuer();
  const identity = await openTestIdentity({ ...env, TRUSTED_ISSUER_INTERNAL_HOSTS: new URL(issuer.url).host });
  const key = await createSigningKey();
  const published: { keys: JWK[] } = { keys: [] };
  beforeEach(() => {
    issuer.reset();
    published.keys = [key.jwk];
    issuer.answers['/jwks'] = (_req, res) => sendJson(res, 200, published);
    issuer.asked.length = 0;
  });
  afterAll(() => issuer.stop());
  const nowS = () => Math.floor(identity.clock.now().getTime() / 1_000);
  const settings = {
    ...{ name: 'GitHub', issuer: issuer.url, audience: AUDIENCE, claims: JSON.stringify(CLAIMS) },
    ...{ scopes: ['files:upload'], allApplications: true, lifetimeSeconds: 600 },
  };
  return {
    ...{ issuer, identity, key, published, settings, nowS },
    /** A trusted issuer of a new account. */
    async trust(change: Partial<typeof settings> & { accountId?: string; jwks?: string; applicationIds?: string[] } = {}) {
      const accountId = change.accountId ?? (await someAccountId(identity));
      const { trustedIssuer } = await identity.trustedIssuers.createTrustedIssuer({ ...settings, ...change, accountId });
      return { accountId, trusted: present(trustedIssuer) };
    },
    claims: (change: JWTPayload = {}) => ({
      ...{ iss: issuer.url, aud: AUDIENCE, sub: SUBJECT, jti: randomUUID(), iat: nowS(), exp: nowS() + 300 },
      ...CLAIMS,
      ...change,
    }),
    sign: (claims: JWTPayload, { jwk, privateKey }: SigningKey = key) =>
      new SignJWT(claims).setProtectedHeader({ alg: jwk.alg ?? '', kid: jwk.kid ?? '' }).sign(privateKey),
    exchange: (subjectToken: string, audience?: string) =>
      identity.trustedIssuers.exchangeToken({ subjectToken, ...(audience !== undefined && { audience }) }),
  };
}
