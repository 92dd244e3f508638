import type { Http } from '../http/http.ts';
import { readToken } from '../http/response.ts';
import type { CallOptions } from '../options.ts';
import type { ExchangedKey, NewTrustedIssuer, Scope, TrustedIssuer } from '../types.ts';

export interface ExchangeOptions {
  readonly signal?: AbortSignal | undefined;
  /** The `aud` of the token, or the id of a trusted issuer. Unless given, any that accepts it. */
  readonly audience?: string | undefined;
  /** Scopes of the key, a part of those of the trusted issuer. All of them unless given. */
  readonly scopes?: readonly Scope[] | undefined;
}

/** Issuers whose tokens are exchanged for keys. Needs a session, except for the exchange. */
export const createTrustedIssuers = (http: Http) => ({
  list: (options?: CallOptions): Promise<TrustedIssuer[]> => http.call('GET /api/v1/panel/trusted-issuers', {}, options),

  /** @throws LatchkeyError `two_factor_required` if a `code` is needed */
  create: (trustedIssuer: NewTrustedIssuer, options?: CallOptions): Promise<TrustedIssuer> =>
    http.call('POST /api/v1/panel/trusted-issuers', { body: trustedIssuer }, options),

  /** Removes a trusted issuer. Its keys are rejected from the next request on. */
  remove: (id: string, options?: CallOptions): Promise<void> =>
    http.call('DELETE /api/v1/panel/trusted-issuers/{id}', { path: { id } }, options),

  /**
   * Exchanges a JWT of a trusted issuer for a management key, once. It needs neither a key nor a
   * session.
   *
   * @throws LatchkeyError `invalid_request` for a token that is not accepted, `invalid_target`,
   *   `invalid_scope`
   */
  async exchange(token: string, { audience, scopes, signal }: ExchangeOptions = {}): Promise<ExchangedKey> {
    const form = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      ...(audience !== undefined && { audience }),
      ...(scopes && { scope: scopes.join(' ') }),
    };
    const request = http.toRequest('POST /api/v1/auth/token', {});
    request.headers['content-type'] = 'application/x-www-form-urlencoded';
    const init = { body: new URLSearchParams(form).toString() };
    return http.repeat(request, { signal }, () => http.attempt(request, init, signal, readToken));
  },
});
