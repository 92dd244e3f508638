import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { countHeader } from '@latchkey/kit/http/request';
import { parseCookie } from 'cookie';

export const SESSION_COOKIE = 'session';

/** What a request presents. An `Authorization` header makes it a key's request, and a cookie is ignored (decisions 2). */
export type Credential =
  | { readonly kind: 'none' }
  | { readonly kind: 'malformed_key' }
  | { readonly kind: 'key' | 'session'; readonly text: string };

const NONE: Credential = { kind: 'none' };
const MALFORMED: Credential = { kind: 'malformed_key' };
const BEARER = /^Bearer +([\x21-\x7e]{1,256})$/i;
const SESSION_TOKEN = /^[A-Za-z0-9_-]{1,128}$/;

/** Reads the credential. Two `Authorization` headers are a malformed key: Node would silently use the first. */
export function readCredential(req: IncomingMessage): Credential {
  const { authorization, cookie } = req.headers;
  if (authorization !== undefined) {
    const text = countHeader(req, 'authorization') === 1 ? BEARER.exec(authorization)?.[1] : undefined;
    return text === undefined ? MALFORMED : { kind: 'key', text };
  }
  if (cookie === undefined) return NONE;
  const token = parseCookie(cookie)[SESSION_COOKIE];
  if (token === undefined) return NONE;
  return { kind: 'session', text: SESSION_TOKEN.test(token) ? token : '' };
}

/** Key of a credential in the cache: a hash, so that the heap holds no list of secrets. */
export function credentialDigest({ kind, text }: { readonly kind: 'key' | 'session'; readonly text: string }): string {
  return hash('sha256', `${kind} ${text}`, 'base64');
}
