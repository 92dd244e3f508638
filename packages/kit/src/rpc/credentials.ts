import { hash, timingSafeEqual } from 'node:crypto';
import { Code, ConnectError } from '@connectrpc/connect';

const digest = (text: string) => hash('sha256', text, 'buffer');

/** Accepts `Bearer <credential>` in constant time. Two credentials allow rotation. */
export function createCredentialCheck(credentials: readonly string[]): (authorization: string | undefined) => boolean {
  const accepted = credentials.map((credential) => digest(bearer(credential)));
  return (authorization) => {
    if (!authorization) return false;
    const given = digest(authorization);
    return accepted.some((expected) => timingSafeEqual(expected, given));
  };
}

export function bearer(credential: string): string {
  return `Bearer ${credential}`;
}

export function unauthenticated(): ConnectError {
  return new ConnectError('a service credential is required', Code.Unauthenticated);
}
