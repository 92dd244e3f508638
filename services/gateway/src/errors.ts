import { JSON_BODY_KIB_MAX } from '@latchkey/contract/limits';
import { defineErrors, MALFORMED_MESSAGE } from '@latchkey/kit/errors/errors';

export const errors = defineErrors({
  request_invalid: { kind: 'malformed', message: MALFORMED_MESSAGE },
  body_too_large: {
    kind: 'too_large',
    code: 'VALIDATION_ERROR',
    message: MALFORMED_MESSAGE,
    path: 'body',
    rule: `must be at most ${JSON_BODY_KIB_MAX} KiB`,
  },
  media_type_unsupported: {
    kind: 'unsupported_media_type',
    message: MALFORMED_MESSAGE,
    path: 'header.content-type',
    rule: 'must be application/json',
  },
  encoding_unsupported: {
    kind: 'unsupported_media_type',
    message: MALFORMED_MESSAGE,
    path: 'header.content-encoding',
    rule: 'must be identity or absent',
  },
  tus_version_unsupported: {
    kind: 'precondition_failed',
    message: 'Tus-Resumable must be 1.0.0',
    path: 'header.tus-resumable',
    rule: 'must be 1.0.0',
  },
  chunk_too_long: { kind: 'too_large', message: 'The chunk has more bytes than the upload lacks' },
  route_not_found: { kind: 'not_found', message: 'Not found' },
  application_not_found: { kind: 'not_found', message: 'Not found' },
  method_not_allowed: { kind: 'method_not_allowed', message: 'The method is not allowed here' },
  credential_missing: {
    kind: 'unauthenticated',
    code: 'api_key_invalid',
    message: 'No API key and no session. Send an API key as Authorization: Bearer <key>, or sign in',
  },
  api_key_malformed: {
    kind: 'unauthenticated',
    code: 'api_key_invalid',
    message: 'The API key is not valid. Send a valid one as Authorization: Bearer <key>',
  },
  session_missing: { kind: 'unauthenticated', message: 'No session. Sign in first' },
  session_required: { kind: 'forbidden', code: 'session_required', message: 'This route needs a dashboard session' },
  scope_missing: { kind: 'forbidden', code: 'insufficient_scope', message: 'The API key lacks the scope for this route' },
  application_forbidden: {
    kind: 'forbidden',
    code: 'application_forbidden',
    message: 'The API key has no access to this application',
  },
  two_factor_required: {
    kind: 'unauthenticated',
    code: 'two_factor_required',
    message: 'Two-factor authentication is on. Send a code of the second factor',
  },
  cursor_invalid: {
    kind: 'invalid',
    message: 'Invalid cursor. Use nextCursor of the page before, or omit it',
    path: 'query.cursor',
    rule: 'must be the nextCursor of a page',
  },
  content_digest_required: {
    kind: 'invalid',
    message: 'An upload with an Idempotency-Key needs a Content-Digest',
    path: 'header.content-digest',
    rule: 'is required with an Idempotency-Key',
  },
  file_name_missing: { kind: 'invalid', message: 'The action needs a fileName', path: 'body.fileName', rule: 'is required' },
  avatar_too_large: { kind: 'too_large', message: 'The image is too large for an avatar' },
  grant_type_unsupported: {
    kind: 'invalid',
    code: 'unsupported_grant_type',
    message: 'grant_type must be that of a token exchange (RFC 8693)',
  },
  csrf_invalid: { kind: 'forbidden', code: 'csrf_invalid', message: 'The CSRF token or the origin is not valid' },
  internal_error: { kind: 'internal', message: 'Internal server error' },
  rate_limit_reached: { kind: 'rate_limited', message: 'Too many requests' },
});
