import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '@latchkey/proto/latchkey/rpc/v1/error_pb';

/** Message of malformed requests (specification 7). */
export const MALFORMED_MESSAGE = 'Request does not match the schema';

/** Connect code, HTTP status and default envelope code of each kind of failure. */
export const ERROR_KINDS = {
  malformed: { connectCode: Code.InvalidArgument, httpStatus: 400, envelopeCode: 'VALIDATION_ERROR' },
  invalid: { connectCode: Code.InvalidArgument, httpStatus: 400, envelopeCode: 'bad_request' },
  unauthenticated: { connectCode: Code.Unauthenticated, httpStatus: 401, envelopeCode: 'unauth' },
  forbidden: { connectCode: Code.PermissionDenied, httpStatus: 403, envelopeCode: 'insufficient_scope' },
  not_found: { connectCode: Code.NotFound, httpStatus: 404, envelopeCode: 'not_found' },
  method_not_allowed: { connectCode: Code.Unimplemented, httpStatus: 405, envelopeCode: 'bad_request' },
  timeout: { connectCode: Code.DeadlineExceeded, httpStatus: 408, envelopeCode: 'bad_request' },
  conflict: { connectCode: Code.AlreadyExists, httpStatus: 409, envelopeCode: 'bad_request' },
  gone: { connectCode: Code.NotFound, httpStatus: 410, envelopeCode: 'not_found' },
  precondition_failed: { connectCode: Code.FailedPrecondition, httpStatus: 412, envelopeCode: 'bad_request' },
  too_large: { connectCode: Code.ResourceExhausted, httpStatus: 413, envelopeCode: 'limit_exceeded' },
  unsupported_media_type: { connectCode: Code.InvalidArgument, httpStatus: 415, envelopeCode: 'VALIDATION_ERROR' },
  unprocessable: { connectCode: Code.FailedPrecondition, httpStatus: 422, envelopeCode: 'bad_request' },
  locked: { connectCode: Code.Aborted, httpStatus: 423, envelopeCode: 'upload_locked' },
  // Status of the tus protocol, version 1.0.0.
  checksum_mismatch: { connectCode: Code.InvalidArgument, httpStatus: 460, envelopeCode: 'invalid_file' },
  rate_limited: { connectCode: Code.ResourceExhausted, httpStatus: 429, envelopeCode: 'rate_limit_reached' },
  internal: { connectCode: Code.Internal, httpStatus: 500, envelopeCode: 'INTERNAL_ERROR' },
  unavailable: { connectCode: Code.Unavailable, httpStatus: 503, envelopeCode: 'INTERNAL_ERROR' },
  // Libraries repeat calls that fail with `unavailable`; this one may have had its effect.
  unknown: { connectCode: Code.Unknown, httpStatus: 503, envelopeCode: 'outcome_unknown' },
} as const;

export type ErrorKind = keyof typeof ERROR_KINDS;

export interface ErrorDefinition {
  readonly kind: ErrorKind;
  /** Envelope code where the kind's own does not fit. */
  readonly code?: string;
  /** Sentence for the client. It names no secret and nothing of another account. */
  readonly message: string;
  /** Input that broke the rule; `request` unless set. The gateway adds where it is. */
  readonly path?: string;
  /** The rule in words, such as `must be a whole number`; the message unless set. */
  readonly rule?: string;
}

/** One input that broke a rule, and the rule in words, which never repeat the input. */
export interface ErrorDetail {
  readonly path: string;
  readonly message: string;
}

/** Envelope codes whose errors carry details (specification 7). */
const DETAILED_CODES: ReadonlySet<string> = new Set(['VALIDATION_ERROR', 'bad_request']);

/** A failure that a rule of the domain raised. Everything else is a defect, and masked. */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly reason: string;
  readonly kind: ErrorKind;
  readonly code: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** At least one for the codes that carry details, none for others. */
  readonly details: readonly ErrorDetail[];

  constructor(
    reason: string,
    definition: ErrorDefinition,
    metadata: Readonly<Record<string, string>> = {},
    details: readonly ErrorDetail[] = [],
  ) {
    super(definition.message);
    this.reason = reason;
    this.kind = definition.kind;
    this.code = definition.code ?? ERROR_KINDS[definition.kind].envelopeCode;
    this.metadata = metadata;
    const { path = 'request', rule = definition.message } = definition;
    const known = details.length > 0 ? details : [{ path, message: rule }];
    this.details = DETAILED_CODES.has(this.code) ? known : [];
  }

  withDetails(...details: readonly ErrorDetail[]): DomainError {
    return new DomainError(this.reason, this, this.metadata, details);
  }

  get httpStatus(): number {
    return ERROR_KINDS[this.kind].httpStatus;
  }
}

/** The limit that rejected a call. `RateLimit` headers and `Retry-After` are made of it. */
export interface ReachedLimit {
  /** Name in the headers. */
  readonly policy: string;
  readonly limit: number;
  /** Window of a rate, or longest time of a concurrent use; 0 where that has no bound. */
  readonly windowMs: number;
  readonly retryMs: number;
}

function limitMetadata({ policy, limit, windowMs, retryMs }: ReachedLimit): Record<string, string> {
  const windowSeconds = String(Math.ceil(windowMs / 1_000));
  return { policy, limit: String(limit), windowSeconds, remaining: '0', retryAfterSeconds: String(waitSeconds(retryMs)) };
}

/** At least 1: clients must not retry immediately. */
export const waitSeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000));

export type Catalogue<T> = { readonly [R in keyof T]: (limit?: ReachedLimit) => DomainError };

/**
 * Makes a service's error catalogue: one function per reason, which builds the error to throw.
 *
 * @example throw errors.application_not_found();
 */
export function defineErrors<const T extends Record<string, ErrorDefinition>>(definitions: T): Catalogue<T> {
  const entries = Object.entries(definitions).map(([reason, definition]) => [
    reason,
    (limit?: ReachedLimit) => new DomainError(reason, definition, limit && limitMetadata(limit)),
  ]);
  return Object.fromEntries(entries) as Catalogue<T>;
}

/** Failures that any service may meet. */
export const commonErrors = defineErrors({
  request_malformed: { kind: 'invalid', message: 'The request is not valid HTTP', rule: 'must be valid HTTP' },
  chunks_too_small: {
    kind: 'invalid',
    message: 'The chunks of the body are too small. Send at least 256 bytes in each on average.',
    path: 'body',
    rule: 'must be sent in chunks of at least 256 bytes on average',
  },
  dependency_unavailable: { kind: 'unavailable', message: 'The service is temporarily unavailable' },
  outcome_unknown: {
    kind: 'unknown',
    message: 'The connection was lost before the result was known: the change may have been made. Check before you repeat it.',
  },
  idempotency_key_invalid: {
    kind: 'malformed',
    message: MALFORMED_MESSAGE,
    path: 'header.idempotency-key',
    rule: 'must be 1 to 255 printable ASCII characters',
  },
  idempotency_key_reused: {
    kind: 'unprocessable',
    code: 'idempotency_key_reused',
    message: 'This Idempotency-Key was used for another request. Send a new key.',
  },
  idempotency_in_progress: {
    kind: 'conflict',
    code: 'idempotency_in_progress',
    message: 'A request with this Idempotency-Key is still running. Repeat it later.',
  },
  queue_full: { kind: 'rate_limited', message: 'Too many requests are waiting. Try again later.' },
  too_many_calls: { kind: 'unavailable', message: 'The service is overloaded. Try again later.' },
});

/** The error as it travels: the kind's Connect code with an `ErrorInfo` detail. */
export function toConnectError(err: DomainError): ConnectError {
  const value = {
    reason: err.reason,
    kind: err.kind,
    code: err.code,
    metadata: err.metadata as { [key: string]: string },
    details: [...err.details],
  };
  const { connectCode } = ERROR_KINDS[err.kind];
  return new ConnectError(err.message, connectCode, undefined, [{ desc: ErrorInfoSchema, value }], err);
}

/** The callee was not reached, or rejected the credential of this service. */
const UNREACHED_CODES: ReadonlySet<Code> = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Unauthenticated]);

/** The domain error of a failed call; undefined for a masked or a transport error. */
export function fromConnectError(err: unknown): DomainError | undefined {
  if (err instanceof DomainError) return err;
  if (!(err instanceof ConnectError)) return undefined;
  const info = err.findDetails(ErrorInfoSchema)[0];
  if (info && Object.hasOwn(ERROR_KINDS, info.kind)) {
    const definition = { kind: info.kind as ErrorKind, message: err.rawMessage, ...(info.code && { code: info.code }) };
    const details = info.details.map(({ path, message }) => ({ path, message }));
    return new DomainError(info.reason, definition, info.metadata, details);
  }
  return UNREACHED_CODES.has(err.code) ? commonErrors.dependency_unavailable() : undefined;
}

/**
 * The error of a change that a service may have read: `outcome_unknown` where no response came.
 * Errors of the service itself stay as they are.
 */
export function toUnknownOutcome(err: unknown): unknown {
  const isLost = err instanceof ConnectError && (err.code === Code.Unavailable || err.code === Code.DeadlineExceeded);
  if (!isLost || err.findDetails(ErrorInfoSchema).length > 0) return err;
  return Object.assign(toConnectError(commonErrors.outcome_unknown()), { cause: err });
}

/** True if a call failed because the callee was not reached, or ended during the call. */
export function isUnreachable(err: unknown): boolean {
  return err instanceof ConnectError && err.code === Code.Unavailable && err.findDetails(ErrorInfoSchema).length === 0;
}
