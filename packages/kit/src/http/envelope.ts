import { type DomainError, ERROR_KINDS } from '../errors.ts';

/** Body of every failure (specification 7). */
export interface ErrorEnvelope {
  readonly success: false;
  readonly code: string;
  readonly message: string;
}

/**
 * The envelope for a failure. Messages of internal errors carry the request's id, which is in the logs of every service that the request
 * touched (decisions 1).
 */
export function errorEnvelope(err: DomainError, requestId: string): ErrorEnvelope {
  const message = err.code === ERROR_KINDS.internal.envelopeCode ? `${err.message}. Error id: ${requestId}` : err.message;
  return { success: false, code: err.code, message };
}

/** Body of every success: `data` only where a route has some, and whatever else a route has beside it. */
export function successEnvelope(message: string, data: unknown, beside?: object): object {
  return data === undefined ? { success: true, message } : { success: true, message, data, ...beside };
}
