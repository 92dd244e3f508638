import type { components } from './generated/openapi.ts';

/** Codes of the interface, and those of this client. Later servers may add codes. */
export type ErrorCode =
  | components['schemas']['ErrorCode']
  | 'connection_failed'
  | 'timeout'
  | 'unexpected_response'
  | 'checksum_mismatch'
  | 'upload_unfinished'
  | 'socket_key_rejected'
  | 'socket_key_rotated'
  | 'live_events_rejected'
  | (string & {});

/** An input that was rejected: where it is, such as `body.name`, and the rule that it breaks. */
export type ErrorDetail = components['schemas']['ErrorDetail'];

export interface ErrorFacts {
  readonly code: ErrorCode;
  readonly status?: number | undefined;
  readonly details?: readonly ErrorDetail[] | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/**
 * Every error of this client but those of an aborted signal, of wrong arguments and of the source
 * of an upload.
 */
export class LatchkeyError extends Error {
  override readonly name: string = 'LatchkeyError';
  /** Stable code, such as `not_found`. */
  readonly code: ErrorCode;
  /** HTTP status; 0 without a response. */
  readonly status: number;
  /** The rejected inputs of `VALIDATION_ERROR` and `bad_request`; else empty. */
  readonly details: readonly ErrorDetail[];
  /** Id of the request in the logs of the service. */
  readonly requestId: string | undefined;
  /** Seconds after which the request may succeed, if the service said so. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, { code, status = 0, details = [], requestId, retryAfterSeconds, cause }: ErrorFacts) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.details = details;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** No response: `connection_failed` or `timeout`. The request may have had its effect. */
export class ConnectionError extends LatchkeyError {
  override readonly name = 'ConnectionError';
  /** True if the request was certainly not sent. */
  readonly unsent: boolean;

  constructor(message: string, facts: ErrorFacts & { readonly unsent?: boolean }) {
    super(message, facts);
    this.unsent = facts.unsent ?? false;
  }
}
