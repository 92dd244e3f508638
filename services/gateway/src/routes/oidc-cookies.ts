import type { IncomingMessage } from 'node:http';
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyReply } from 'fastify';

/** Under which the routes of OpenID Connect are. */
export const OIDC_PATH = '/api/v1/auth/oidc';

/** A flow that was begun, and a sign-in that waits for a code. Both are sealed by identity. */
export type OidcCookie = 'oidc_flow' | 'oidc_pending';

/** What a browser keeps until it is back. Empty stands for none. */
export function readOidcCookie(req: IncomingMessage, name: OidcCookie): string {
  return parseCookie(req.headers.cookie ?? '')[name] ?? '';
}

/** The cookies of OpenID Connect. They are `Lax`, not `Strict`: the issuer sends the browser back. */
export class OidcCookies {
  readonly #attributes: { readonly secure: boolean; readonly path: string };

  /**
   * @param attributes whether they are for HTTPS only, and the path that they are for, as browsers see it: a proxy may put something before ours
   */
  constructor(attributes: { readonly secure: boolean; readonly path: string }) {
    this.#attributes = attributes;
  }

  set(reply: FastifyReply, name: OidcCookie, value: string, expiresAt: Timestamp | undefined): void {
    const seconds = expiresAt ? Math.round((timestampDate(expiresAt).getTime() - Date.now()) / 1000) : 0;
    this.#write(reply, name, value, Math.max(0, seconds));
  }

  clear(reply: FastifyReply, name: OidcCookie): void {
    this.#write(reply, name, '', 0);
  }

  #write(reply: FastifyReply, name: OidcCookie, value: string, maxAge: number): void {
    const cookie = { name, value, httpOnly: true, sameSite: 'lax' as const, ...this.#attributes, maxAge };
    reply.header('set-cookie', stringifySetCookie(cookie));
  }
}
