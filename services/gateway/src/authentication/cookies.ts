import type { IncomingMessage } from 'node:http';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { isLoopback } from '@latchkey/kit/config/listen-host';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyReply } from 'fastify';

export const OIDC_PATH = '/api/v1/auth/oidc';

/** A session, a started OpenID Connect flow, and a sign-in that needs a code. */
type CookieName = 'session' | 'oidc_flow' | 'oidc_pending';

export function readCookie({ headers }: IncomingMessage, name: CookieName): string | undefined {
  return headers.cookie === undefined ? undefined : parseCookie(headers.cookie)[name];
}

/** Sets cookies. They are `Lax`, as an issuer of OpenID Connect redirects browsers back. */
export class Cookies {
  readonly #isSecure: boolean;
  readonly #oidcPath: string;

  /** @param publicUrl base URL for browsers: a proxy may prefix our paths */
  constructor(publicUrl: string) {
    this.#isSecure = !isLoopbackHttp(publicUrl);
    this.#oidcPath = new URL(publicUrl.replace(/\/+$/, '') + OIDC_PATH).pathname;
  }

  set(reply: FastifyReply, name: CookieName, value: string, expiresAt: Timestamp | undefined): void {
    const seconds = expiresAt ? Math.round((timestampMs(expiresAt) - Date.now()) / 1000) : 0;
    this.#write(reply, name, value, Math.max(0, seconds));
  }

  clear(reply: FastifyReply, name: CookieName): void {
    if (name === 'session') this.clearCache(reply);
    this.#write(reply, name, '', 0);
  }

  /** Clears the browser's cache, which has avatars and pages of a session that ends. */
  clearCache(reply: FastifyReply): void {
    reply.header('clear-site-data', '"cache"');
  }

  #write(reply: FastifyReply, name: CookieName, value: string, maxAge: number): void {
    const path = name === 'session' ? '/' : this.#oidcPath;
    const attributes = { httpOnly: true, sameSite: 'lax' as const, path, secure: this.#isSecure, maxAge };
    reply.header('set-cookie', stringifySetCookie({ name, value, ...attributes }));
  }
}

/** True if browsers use plain HTTP on their own machine, where a `Secure` cookie would be lost. */
function isLoopbackHttp(publicUrl: string): boolean {
  const { protocol, hostname } = new URL(publicUrl);
  return protocol === 'http:' && isLoopback(hostname);
}
