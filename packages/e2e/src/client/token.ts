import { randomUUID } from 'node:crypto';
import { TOKEN_EXCHANGE_GRANT, TOKEN_TYPES } from '@latchkey/contract/trusted-issuer';
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';

/** An issuer that no service can reach, such as a cluster's. */
export interface OfflineIssuer {
  readonly jwks: { readonly keys: readonly JWK[] };
  /** Signs a new token for an audience. */
  sign(claims: JWTPayload): Promise<string>;
}

export async function createOfflineIssuer(): Promise<OfflineIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid: randomUUID(), alg: 'RS256', use: 'sig' };
  return {
    jwks: { keys: [jwk] },
    sign: (claims) =>
      new SignJWT({ jti: randomUUID(), ...claims })
        .setProtectedHeader({ alg: 'RS256', kid: jwk.kid })
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(privateKey),
  };
}

/** Sends a form to the token route; resolves with the status and the JSON. */
export async function postToken(baseUrl: string, form: Readonly<Record<string, string>> | string) {
  const body = new URLSearchParams(form);
  const response = await fetch(`${baseUrl}/api/v1/auth/token`, { method: 'POST', body });
  const json = (await response.json()) as Readonly<Record<string, string>>;
  return { status: response.status, headers: response.headers, json };
}

/** The form that exchanges a token. */
export const exchangeForm = (subjectToken: string, more: Readonly<Record<string, string>> = {}) => ({
  grant_type: TOKEN_EXCHANGE_GRANT,
  subject_token: subjectToken,
  subject_token_type: TOKEN_TYPES.jwt,
  ...more,
});
