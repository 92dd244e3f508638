import { type DomainError, ERROR_KINDS, type ErrorDetail } from '../errors/errors.ts';

/** Body of every failure (specification 7). */
export interface ErrorEnvelope {
  readonly success: false;
  readonly code: string;
  readonly message: string;
  /** Which inputs broke which rule, for `VALIDATION_ERROR` and `bad_request` (decisions 3). */
  readonly details?: readonly ErrorDetail[];
}

/** The message of every `VALIDATION_ERROR` (specification 7). */
const VALIDATION_MESSAGE = 'Request does not match the schema';
const DETAILS_MAX = 10;

/** The envelope for a failure. Messages of internal errors carry the request id, which is in all logs (decisions 1). */
export function errorEnvelope(err: Pick<DomainError, 'code' | 'message' | 'details'>, requestId: string): ErrorEnvelope {
  const { code, details } = err;
  const envelope = { success: false, code, message: messageOf(err, requestId) } as const;
  return details.length > 0 ? { ...envelope, details: details.slice(0, DETAILS_MAX) } : envelope;
}

function messageOf({ code, message }: Pick<DomainError, 'code' | 'message'>, requestId: string): string {
  if (code === ERROR_KINDS.malformed.envelopeCode) return VALIDATION_MESSAGE;
  return code === ERROR_KINDS.internal.envelopeCode ? `${message}. Error id: ${requestId}` : message;
}

/** Body of every success. `beside` adds further top-level fields. */
export function successEnvelope(message: string, data: unknown, beside?: object): object {
  return data === undefined ? { success: true, message } : { success: true, message, data, ...beside };
}
