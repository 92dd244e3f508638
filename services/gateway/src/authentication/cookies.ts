import type { IncomingMessage } from 'node:http';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { isLoopback } from '@latchkey/kit/config/listen-host';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyReply } from 'fastify';

export const OIDC_PATH = '/api/v1/auth/oidc';

type CookieName = 'session' | 'oidc_flow' | 'oidc_pending';

export function readCookie({ headers }: IncomingMessage, name: CookieName): string | undefined {
  return headers.cookie === undefined ? undefined : parseCookie(headers.cookie)[name];
}

export type Cookies = ReturnType<typeof createCookies>;

/**
 * Sets cookies. They are `Lax`, as an issuer of OpenID Connect redirects browsers back.
 *
 * @param publicUrl base URL for browsers: a proxy may prefix our paths
 */
export function createCookies(publicUrl: string) {
  const secure = !isLoopbackHttp(publicUrl);
  const oidcPath = new URL(publicUrl.replace(/\/+$/, '') + OIDC_PATH).pathname;
  const write = (reply: FastifyReply, name: CookieName, value: string, maxAge: number) => {
    const path = name === 'session' ? '/' : oidcPath;
    reply.header('set-cookie', stringifySetCookie({ name, value, httpOnly: true, sameSite: 'lax', path, secure, maxAge }));
  };
  return {
    set(reply: FastifyReply, name: CookieName, value: string, expiresAt: Timestamp | undefined): void {
      const seconds = expiresAt ? Math.round((timestampMs(expiresAt) - Date.now()) / 1000) : 0;
      write(reply, name, value, Math.max(0, seconds));
    },
    clear(reply: FastifyReply, name: CookieName): void {
      if (name === 'session') clearCache(reply);
      write(reply, name, '', 0);
    },
  };
}

/** Clears the browser's cache, which has avatars and pages of a session that ends. */
export function clearCache(reply: FastifyReply): void {
  reply.header('clear-site-data', '"cache"');
}

/** True if browsers use plain HTTP on their own machine, where a `Secure` cookie would be lost. */
function isLoopbackHttp(publicUrl: string): boolean {
  const { protocol, hostname } = new URL(publicUrl);
  return protocol === 'http:' && isLoopback(hostname);
}
