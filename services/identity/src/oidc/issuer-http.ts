import type { DomainError } from '@latchkey/kit/errors/errors';
import type { Logger } from '@latchkey/kit/log/logger';
import { AuthorizationResponseError, type CustomFetch, ResponseBodyError } from 'openid-client';
import pLimit from 'p-limit';
import { errors } from '../proto-errors.ts';
import { isTrustworthy } from './issuer-settings.ts';

/** A defect of an issuer or its response. The message may be logged: no issuer chose it. */
export class IssuerError extends Error {
  override readonly name: string = 'IssuerError';
}

/** A defect of the sign-in, and not of the issuer. */
export class SignInError extends IssuerError {
  override readonly name = 'SignInError';
}

/** The largest key sets have some 20 KiB. */
const BODY_BYTES_MAX = 256 * 1024;
/** Calls to one issuer that wait for others to end; more are rejected. */
const WAITING_MAX = 64;
/** Statuses of responses without a body (Fetch, 2.2.3). */
const BODILESS = new Set([101, 103, 204, 205, 304]);

/**
 * The `fetch` for one issuer: https or loopback only, no redirects (as openid-client asks), and
 * bounded response size and concurrency. The signal of a call also covers its wait and its body.
 * @param send connects; not to every address if users choose the issuer
 */
export function createIssuerFetch(concurrency: number, send: typeof fetch = fetch): CustomFetch {
  const limit = pLimit(concurrency);
  return async (url, options) => {
    if (!isTrustworthy(new URL(url))) throw new IssuerError('the URL is neither https nor on loopback');
    if (limit.activeCount + limit.pendingCount >= concurrency + WAITING_MAX) {
      throw new IssuerError('too many calls are waiting');
    }
    return limit(async () => {
      const response = await send(url, options as RequestInit);
      const body = await readBody(response);
      const { status, headers } = response;
      return new Response(BODILESS.has(status) ? null : body, { status, headers });
    });
  };
}

async function readBody({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let byteSize = 0;
  // Leaving the loop cancels the body and the call.
  for await (const chunk of body ?? []) {
    byteSize += chunk.byteLength;
    if (byteSize > BODY_BYTES_MAX) throw new IssuerError('the body is too large');
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

/** Codes of openid-client for invalid responses; others mean that the issuer is unavailable. */
const INVALID_RESPONSE = new Set<unknown>([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_PARSE_ERROR',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
]);

/** Errors of token endpoints (RFC 6749, 5.2); others are an issuer's own text. */
const TOKEN_ERROR = /^(invalid_(request|client|grant|scope)|unauthorized_client|unsupported_grant_type)$/;
const ERROR_CODE = /^[A-Z][A-Z0-9_]{0,63}$/;

/**
 * Maps an error of openid-client to one of the service, and logs its cause. The error itself is
 * dropped, as tokens, codes and claims hang on it.
 * @returns `oidc_refused` or `oidc_issuer_unavailable`
 */
export function toDomainError(err: unknown, logger: Logger, issuer: string, step: 'discovery' | 'sign-in'): DomainError {
  const facts = { issuer, step, cause: causeOf(err) };
  const isRefused = isRejectedByIssuer(err) || INVALID_RESPONSE.has(codeOf(err)) || err instanceof SignInError;
  if (step === 'sign-in' && isRefused) {
    logger.info(facts, 'sign-in by OpenID Connect rejected');
    return errors.oidc_refused();
  }
  logger.warn(facts, 'OpenID Connect issuer unavailable');
  return errors.oidc_issuer_unavailable();
}

/** True if the issuer rejected the person or the code in a valid response. */
export function isRejectedByIssuer(err: unknown): boolean {
  return err instanceof AuthorizationResponseError || (err instanceof ResponseBodyError && err.error === 'invalid_grant');
}

/** A word for the log that no issuer chose. */
export function causeOf(err: unknown): string {
  if (err instanceof IssuerError) return err.message;
  if (err instanceof ResponseBodyError && TOKEN_ERROR.test(err.error)) return err.error;
  if (!(err instanceof Error)) return 'unknown';
  if (err.cause instanceof IssuerError) return err.cause.message;
  return codeOf(err.cause) ?? codeOf(err) ?? (err.cause instanceof Error ? err.cause : err).name;
}

function codeOf(err: unknown): string | undefined {
  const code = err instanceof Error && 'code' in err ? err.code : undefined;
  return typeof code === 'string' && ERROR_CODE.test(code) ? code : undefined;
}
