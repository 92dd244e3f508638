import type { Http } from '../http/http.ts';
import type { DataOf } from '../http/routes.ts';
import type { CallOptions } from '../options.ts';

/** Two-factor authentication of the account. Needs a session. */
export const createTwoFactor = (http: Http) => ({
  /** Makes the secret for an authenticator app. Nothing changes before `enable`. */
  setUp: (options?: CallOptions): Promise<DataOf<'POST /api/v1/auth/two-factor/set-up'>> =>
    http.call('POST /api/v1/auth/two-factor/set-up', {}, options),

  /** Resolves with the recovery codes, which are shown this once. Other sessions end. */
  async enable(code: string, options?: CallOptions): Promise<string[]> {
    const { recoveryCodes } = await http.call('POST /api/v1/auth/two-factor/enable', { body: { code } }, options);
    return recoveryCodes;
  },

  /** @param proof the password, if the account has one, and a code or recovery code */
  disable: (proof: { readonly code: string; readonly password?: string | undefined }, options?: CallOptions): Promise<void> =>
    http.call('POST /api/v1/auth/two-factor/disable', { body: proof }, options),
});
