/** Routes that need no session, and so no CSRF token. */
const PUBLIC = /^\/api\/v1\/auth\/(sign-up|sign-in|token|oidc\/complete|password\/(forgot|reset))$/;

/**
 * The session of a client without a key. Browsers store and send the cookie themselves, and hide
 * it; elsewhere it is held here, in memory.
 */
export class Session {
  csrfToken: string | undefined;
  #cookie: string | undefined;

  /** True if a request needs a CSRF token. */
  needsCsrfToken(method: string, path: string): boolean {
    return method !== 'GET' && !PUBLIC.test(path);
  }

  /** The headers of a request. */
  headers(method: string, path: string): Record<string, string> {
    return {
      ...(this.#cookie !== undefined && { cookie: this.#cookie }),
      ...(this.csrfToken !== undefined && this.needsCsrfToken(method, path) && { 'x-csrf-token': this.csrfToken }),
    };
  }

  /** Takes the cookies that a response sets, as a program sees them, and a token in its data. */
  take(setCookies: readonly string[], data: unknown): void {
    for (const line of setCookies) {
      const [, token] = /^session=([^;]*)/.exec(line) ?? [];
      if (token === undefined) continue;
      this.#cookie = token === '' ? undefined : `session=${token}`;
      if (token === '') this.csrfToken = undefined;
    }
    const { csrfToken } = (data ?? {}) as { readonly csrfToken?: unknown };
    if (typeof csrfToken === 'string') this.csrfToken = csrfToken;
  }
}
