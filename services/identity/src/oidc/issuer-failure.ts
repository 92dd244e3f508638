import type { DomainError } from '@latchkey/kit/errors';
import type { Logger } from '@latchkey/kit/logger';
import { AuthorizationResponseError, ResponseBodyError } from 'openid-client';
import { errors } from '../errors.ts';

/** Codes of openid-client for an answer that was understood and is not to be believed; all others mean that the issuer can't be asked. */
const UNBELIEVED = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_PARSE_ERROR',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
]);

/** Errors of token endpoints (RFC 6749, 5.2) that may be logged; others are an issuer's own text. */
const TOKEN_ERRORS = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]);

const ERROR_CODE = /^[A-Z][A-Z0-9_]{0,63}$/;

/** What was asked of an issuer. */
export type IssuerStep = 'discovery' | 'sign-in';

/**
 * Turns whatever a call of openid-client threw into a refusal, and logs what an operator has to know. The error itself goes nowhere: tokens, codes
 * and claims hang on it.
 *
 * @returns `oidc_refused` or `oidc_issuer_unavailable`
 */
export function toRefusal(err: unknown, logger: Logger, issuer: string, step: IssuerStep): DomainError {
  const believed = step === 'sign-in' && isRefusal(err);
  const facts = { issuer, step, cause: causeOf(err) };
  if (!believed) logger.warn(facts, 'an OpenID Connect issuer can not be used');
  else logger.info(facts, 'a sign-in by OpenID Connect was refused');
  return believed ? errors.oidc_refused() : errors.oidc_issuer_unavailable();
}

/** Whether the issuer itself rejected the person or the code, by an answer that it should give. */
export function isRejectedByIssuer(err: unknown): boolean {
  return err instanceof AuthorizationResponseError || (err instanceof ResponseBodyError && err.error === 'invalid_grant');
}

/** Whether it is the sign-in that failed, and not the issuer or what it knows of this service. */
function isRefusal(err: unknown): boolean {
  return isRejectedByIssuer(err) || UNBELIEVED.has(codeOf(err) ?? '');
}

/** A word for the log that nobody else chose. */
function causeOf(err: unknown): string {
  if (err instanceof ResponseBodyError && TOKEN_ERRORS.has(err.error)) return err.error;
  const { cause, name } = err as { cause?: unknown; name?: string };
  return codeOf(cause) ?? codeOf(err) ?? nameOf(cause) ?? name ?? 'unknown';
}

function codeOf(err: unknown): string | undefined {
  const code = err instanceof Error && 'code' in err ? err.code : undefined;
  return typeof code === 'string' && ERROR_CODE.test(code) ? code : undefined;
}

/** Our own error says what was wrong in words of ours. */
function nameOf(err: unknown): string | undefined {
  if (!(err instanceof Error)) return undefined;
  return err.name === 'IssuerCallError' ? err.message : err.name;
}
