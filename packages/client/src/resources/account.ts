import type { Http } from '../http/http.ts';
import type { CallOptions } from '../options.ts';
import type {
  AccountLimits,
  Credentials,
  EmailChange,
  NewAccount,
  OpenSession,
  OwnerProof,
  PasswordChange,
  PasswordReset,
  Session,
  SignInMethods,
} from '../types.ts';

/** Accounts and sessions, for a client without a key. */
export const createAccount = (http: Http) => ({
  /** Creates an account, and opens a session. */
  signUp: (account: NewAccount, options?: CallOptions): Promise<Session> =>
    http.call('POST /api/v1/auth/sign-up', { body: account }, options),

  /**
   * Opens a session.
   *
   * @throws LatchkeyError `two_factor_required` if a `code` is needed, `unauth` if the email or the
   * password is wrong
   */
  signIn: (credentials: Credentials, options?: CallOptions): Promise<Session> =>
    http.call('POST /api/v1/auth/sign-in', { body: credentials }, options),

  /** Sign-in methods besides email and password. */
  signInMethods: (options?: CallOptions): Promise<SignInMethods> => http.call('GET /api/v1/auth/methods', {}, options),

  /** The session and its account. */
  session: (options?: CallOptions): Promise<Session> => http.call('GET /api/v1/auth/session', {}, options),

  /** Ends the session. */
  signOut: (options?: CallOptions): Promise<void> => http.call('POST /api/v1/auth/sign-out', {}, options),

  /** Ends all sessions of the account. Management keys stay valid. */
  signOutEverywhere: (options?: CallOptions): Promise<void> => http.call('POST /api/v1/auth/sign-out-everywhere', {}, options),

  /** The sessions of the account: this one, then those used last. */
  sessions: (options?: CallOptions): Promise<OpenSession[]> => http.call('GET /api/v1/auth/sessions', {}, options),

  /** Ends one session of the account, from the next request on. */
  endSession: (id: string, options?: CallOptions): Promise<void> =>
    http.call('DELETE /api/v1/auth/sessions/{id}', { path: { id } }, options),

  /** Sets another password, and ends the other sessions of the account. */
  changePassword: (change: PasswordChange, options?: CallOptions): Promise<void> =>
    http.call('POST /api/v1/auth/password/change', { body: change }, options),

  /** Sends a mail with a link that is valid once for 30 minutes, if an account has the email. */
  forgotPassword: (email: string, options?: CallOptions): Promise<void> =>
    http.call('POST /api/v1/auth/password/forgot', { body: { email } }, options),

  /** Sets another password with the token of such a link, and ends all sessions of the account. */
  resetPassword: (reset: PasswordReset, options?: CallOptions): Promise<void> =>
    http.call('POST /api/v1/auth/password/reset', { body: reset }, options),

  /** Sends a mail with a link to the new address. The email changes when its token is confirmed. */
  changeEmail: (change: EmailChange, options?: CallOptions): Promise<void> =>
    http.call('POST /api/v1/auth/email/change', { body: change }, options),

  /** Changes the email with the token of such a link. */
  confirmEmail: (token: string, options?: CallOptions): Promise<void> =>
    http.call('POST /api/v1/auth/email/confirm', { body: { token } }, options),

  /**
   * Deletes the account with all it owns.
   *
   * @throws LatchkeyError `two_factor_required` if a `code` is needed, `bad_request` if the
   *   password or the code is wrong
   */
  delete: (proof: OwnerProof, options?: CallOptions): Promise<void> =>
    http.call('DELETE /api/v1/auth/account', { body: proof }, options),
});

/** Limits and usage of an account. */
export const createLimits = (http: Http) => ({
  get: (options?: CallOptions): Promise<AccountLimits> => http.call('GET /api/v1/panel/get-account-limits', {}, options),
});
