import { defineErrors } from '@latchkey/kit/errors';

const MALFORMED = 'Request does not match the schema';

/** The errors of the identity service (specification 5 and 7, decisions 3 to 5). */
export const errors = defineErrors({
  sign_up_invalid: { kind: 'malformed', message: MALFORMED },
  sign_in_invalid: { kind: 'malformed', message: MALFORMED },
  password_invalid: { kind: 'malformed', message: MALFORMED },
  sign_up_closed: { kind: 'forbidden', code: 'sign_up_closed', message: 'Sign-up is closed' },
  sign_in_failed: { kind: 'unauthenticated', message: 'The email or the password is wrong' },
  account_exists: { kind: 'conflict', code: 'account_exists', message: 'The username or the email is taken' },
  account_not_found: { kind: 'not_found', message: 'Not found' },
  avatar_invalid: { kind: 'malformed', message: MALFORMED },
  password_attempts_reached: { kind: 'rate_limited', message: 'Too many wrong passwords' },
  two_factor_required: {
    kind: 'unauthenticated',
    code: 'two_factor_required',
    message: 'The code of the second factor is needed',
  },
  two_factor_code_invalid: { kind: 'invalid', message: 'The code is wrong, or was used before' },
  two_factor_password_wrong: { kind: 'invalid', message: 'The password is wrong' },
  two_factor_attempts_reached: { kind: 'rate_limited', message: 'Too many wrong codes' },
  two_factor_already_enabled: { kind: 'invalid', message: 'Two-factor authentication is on already' },
  two_factor_not_set_up: { kind: 'invalid', message: 'Two-factor authentication is not set up' },
  two_factor_not_enabled: { kind: 'invalid', message: 'Two-factor authentication is not on' },
  oidc_request_invalid: { kind: 'malformed', message: MALFORMED },
  oidc_issuer_not_found: { kind: 'not_found', message: 'Not found' },
  oidc_issuer_unavailable: { kind: 'unavailable', message: 'The sign-in provider does not answer as it should' },
  oidc_flow_invalid: {
    kind: 'unauthenticated',
    message: 'The sign-in was not begun here, is over, or took too long: begin again',
  },
  oidc_refused: { kind: 'unauthenticated', message: 'The sign-in provider did not sign you in' },
  oidc_email_unverified: {
    kind: 'forbidden',
    code: 'email_not_verified',
    message: 'The sign-in provider names no email address that it has verified',
  },
  oidc_email_taken: {
    kind: 'conflict',
    code: 'account_exists',
    message: 'An account has this email: sign in to it and link it to the sign-in provider',
  },
  oidc_signed_in_already: {
    kind: 'conflict',
    code: 'account_exists',
    message: 'You are signed in to an account already: link it to the sign-in provider, or sign out of it first',
  },
  oidc_password_wrong: { kind: 'invalid', message: 'The password is wrong' },
  oidc_session_too_old: {
    kind: 'forbidden',
    code: 'session_required',
    message: 'Sign in again first: the account has no password, so its session must not be older than 10 minutes',
  },
  oidc_link_not_found: { kind: 'not_found', message: 'Not found' },
  oidc_link_needed: { kind: 'invalid', message: 'The account has no password: it can be signed in to by nothing else' },
  oidc_subject_linked: { kind: 'conflict', code: 'account_exists', message: 'This sign-in belongs to another account' },
  session_invalid: { kind: 'unauthenticated', message: 'The session is not valid' },
  api_key_invalid: { kind: 'unauthenticated', code: 'api_key_invalid', message: 'The API key is not valid' },
  api_key_expired: { kind: 'unauthenticated', code: 'api_key_expired', message: 'The API key has expired' },
  api_key_revoked: { kind: 'unauthenticated', code: 'api_key_revoked', message: 'The API key was revoked' },
  api_key_not_found: { kind: 'not_found', message: 'Not found' },
  api_key_settings_invalid: { kind: 'malformed', message: MALFORMED },
  api_key_conflict: { kind: 'invalid', message: 'The change contradicts the applications the key has' },
  revoked_api_key_unchangeable: { kind: 'invalid', message: 'A revoked API key cannot be changed' },
  active_api_keys_limit_exceeded: { kind: 'forbidden', code: 'limit_exceeded', message: 'Too many active API keys' },
  application_not_found: { kind: 'not_found', message: 'Not found' },
});
