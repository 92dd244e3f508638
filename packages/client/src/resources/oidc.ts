import type { Http } from '../http/http.ts';
import type { BodyOf } from '../http/routes.ts';
import type { CallOptions } from '../options.ts';
import type { OidcLink, Session } from '../types.ts';

/** Sign-in by OpenID Connect, in browsers. */
export const createOidc = (http: Http) => ({
  /** The URL that the browser goes to, to sign in. */
  signInUrl(issuer: string): string {
    return http.toRequest('GET /api/v1/auth/oidc/start', { query: { issuer } }).url;
  },

  /** Ends a sign-in that needs the code of a second factor. */
  complete: (code: string, options?: CallOptions): Promise<Session> =>
    http.call('POST /api/v1/auth/oidc/complete', { body: { code } }, options),

  /** Begins to link the account to an issuer. Resolves with the URL that the browser goes to. */
  async link(link: BodyOf<'POST /api/v1/auth/oidc/link'>, options?: CallOptions): Promise<string> {
    return (await http.call('POST /api/v1/auth/oidc/link', { body: link }, options)).url;
  },

  /** The issuers that the account is linked to. */
  links: (options?: CallOptions): Promise<OidcLink[]> => http.call('GET /api/v1/auth/oidc/links', {}, options),

  /** Removes links to an issuer. Resolves with their number. */
  async unlink(link: BodyOf<'POST /api/v1/auth/oidc/unlink'>, options?: CallOptions): Promise<number> {
    return (await http.call('POST /api/v1/auth/oidc/unlink', { body: link }, options)).removed;
  },
});
