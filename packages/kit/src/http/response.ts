import type { ServerResponse } from 'node:http';
import { type DomainError, ERROR_KINDS, MALFORMED_MESSAGE } from '../errors/errors.ts';

/** Headers of every response; downloads have others. No cache may store keys and settings. */
export const STANDARD_HEADERS = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' } as const;

/** For bytes of users: no script in them may run, and nothing be loaded. */
export const UNTRUSTED_CONTENT_POLICY = "sandbox; default-src 'none'";

/** The standard headers. With a `publicUrl` of https, browsers must use it (RFC 6797). */
export function standardHeaders(publicUrl: string | undefined): Readonly<Record<string, string>> {
  const isSecure = publicUrl?.startsWith('https:');
  return { ...STANDARD_HEADERS, ...(isSecure && { 'strict-transport-security': 'max-age=31536000' }) };
}

/** Most details of an error. */
export const DETAILS_MAX = 10;

/** The envelope for a failure. Messages of internal errors have the request id. */
export function errorEnvelope(err: Pick<DomainError, 'code' | 'message' | 'details'>, requestId: string): object {
  const { code, details } = err;
  const envelope = { success: false, code, message: publicMessage(err, requestId) } as const;
  return details.length > 0 ? { ...envelope, details: details.slice(0, DETAILS_MAX) } : envelope;
}

function publicMessage({ code, message }: Pick<DomainError, 'code' | 'message'>, requestId: string): string {
  if (code === ERROR_KINDS.malformed.envelopeCode) return MALFORMED_MESSAGE;
  return code === ERROR_KINDS.internal.envelopeCode ? `${message}. Error id: ${requestId}` : message;
}

/** Body of every success. `beside` adds further top-level fields. */
export function successEnvelope(message: string, data: unknown, beside?: object): object {
  return data === undefined ? { success: true, message } : { success: true, message, data, ...beside };
}

/**
 * Waits until a response is the next on its connection, before something is opened for it. Returns
 * false if the connection is gone.
 */
export async function waitForTurn(res: ServerResponse): Promise<boolean> {
  if (!res.destroyed && res.socket === null) {
    await new Promise<void>((resolve) => {
      // A response gets its socket when its turn comes.
      res.once('socket', () => resolve()).once('close', () => resolve());
    });
  }
  return !res.destroyed;
}
