import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { countHeader } from '@latchkey/kit/http/request';
import { readCookie } from './cookies.ts';

export interface GivenCredential {
  readonly kind: 'key' | 'session';
  readonly text: string;
}

/** Credential of a request. With an `Authorization` header it is a key, and cookies are ignored. */
export type Credential = { readonly kind: 'none' | 'malformed_key' } | GivenCredential;

export interface Principal {
  readonly kind: 'key' | 'session';
  readonly accountId: string;
  readonly username: string;
  readonly credentialId: string;
  readonly scopes: ReadonlySet<string>;
  readonly allApplications: boolean;
  readonly applicationIds: ReadonlySet<string>;
  /** Expiry of the credential, in milliseconds of Unix time; Infinity for never. */
  readonly expiresAtMs: number;
  /** Required in state-changing requests of a session; empty for a key. */
  readonly csrfToken: string;
}

const BEARER = /^Bearer +([\x21-\x7e]{1,256})$/i;
const SESSION_TOKEN = /^[A-Za-z0-9_-]{1,128}$/;

/** Reads the credential. Two `Authorization` headers are malformed: Node uses the first. */
export function readCredential(req: IncomingMessage): Credential {
  const { authorization } = req.headers;
  if (authorization !== undefined) {
    const text = countHeader(req, 'authorization') === 1 ? BEARER.exec(authorization)?.[1] : undefined;
    return text === undefined ? { kind: 'malformed_key' } : { kind: 'key', text };
  }
  const token = readCookie(req, 'session');
  if (token === undefined) return { kind: 'none' };
  return { kind: 'session', text: SESSION_TOKEN.test(token) ? token : '' };
}

/** The client of a sign-in: the token of its session, and its `User-Agent`; empty without one. */
export function readSessionClient(req: IncomingMessage) {
  const credential = readCredential(req);
  return { previousSessionToken: credential.kind === 'session' ? credential.text : '', userAgent: readUserAgent(req) };
}

export function readUserAgent({ headers }: IncomingMessage): string {
  return headers['user-agent'] ?? '';
}

/** Cache key of a credential: a hash, so that the heap holds no list of secrets. */
export function credentialDigest({ kind, text }: GivenCredential): string {
  return hash('sha256', `${kind} ${text}`, 'base64');
}
