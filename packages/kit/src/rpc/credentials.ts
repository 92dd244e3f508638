import { hash, timingSafeEqual } from 'node:crypto';
import { Code, ConnectError } from '@connectrpc/connect';

/** Whether an `Authorization` header is accepted. */
export type CredentialCheck = (authorization: string | undefined) => boolean;

const digest = (text: string) => hash('sha256', text, 'buffer');

/** Accepts `Bearer <credential>` in constant time. Two credentials allow rotation. */
export function createCredentialCheck(credentials: readonly string[]): CredentialCheck {
  const accepted = credentials.map((credential) => digest(bearer(credential)));
  return (authorization) => {
    if (!authorization) return false;
    const given = digest(authorization);
    return accepted.some((expected) => timingSafeEqual(expected, given));
  };
}

/** The header value that presents a credential. */
export function bearer(credential: string): string {
  return `Bearer ${credential}`;
}

/** The error of a call without a valid credential. */
export function unauthenticated(): ConnectError {
  return new ConnectError('a service credential is required', Code.Unauthenticated);
}
