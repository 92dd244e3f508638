import { fromConnectError } from '@latchkey/kit/errors/errors';
import type { SignInFailures } from '../authentication/sign-in-failures.ts';
import type { Clients } from '../clients.ts';

/** Errors of identity for a password that it verified. */
const WRONG_PASSWORD = new Set(['sign_in_failed', 'oidc_password_wrong', 'two_factor_password_wrong']);

/**
 * Does what has a password verified. A wrong one counts as a failed sign-in; successes and other errors do not.
 *
 * @param email of the account that the password is for
 * @throws `rate_limit_reached`, and what `verify` throws
 */
export async function countFailures<T>(
  signInFailures: SignInFailures,
  { email, clientIp }: { readonly email: string; readonly clientIp: string },
  verify: () => Promise<T>,
): Promise<T> {
  const attempt = await signInFailures.begin(email, clientIp);
  try {
    const result = await verify();
    await signInFailures.refund(attempt);
    return result;
  } catch (err) {
    if (!WRONG_PASSWORD.has(fromConnectError(err)?.reason ?? '')) await signInFailures.refund(attempt);
    throw err;
  }
}

/** Does what an owner proves with the password of the account, as {@link countFailures} does. Identity has a limit beside this one. */
export async function withPassword<T>(
  { clients, signInFailures }: { readonly clients: Pick<Clients, 'accounts'>; readonly signInFailures: SignInFailures },
  { accountId, clientIp }: { readonly accountId: string; readonly clientIp: string },
  act: () => Promise<T>,
): Promise<T> {
  const { account } = await clients.accounts.getAccount({ accountId });
  return countFailures(signInFailures, { email: account?.email ?? '', clientIp }, act);
}
