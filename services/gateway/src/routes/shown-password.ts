import type { CallOptions } from '@connectrpc/connect';
import { fromConnectError } from '@latchkey/kit/errors';
import type { SignInFailures } from '../authentication/sign-in-failures.ts';
import type { Clients } from '../clients.ts';

/** Who shows a password with a session, to do more than it may. */
export interface Prover {
  readonly accountId: string;
  readonly clientIp: string;
  readonly call: CallOptions;
}

/** What identity answers of a password that it looked at and that was wrong. */
const WRONG_PASSWORD = new Set(['oidc_password_wrong', 'two_factor_password_wrong']);

/**
 * Does what has a password looked at. A wrong one counts as it does at sign-in, and nothing else does. Identity has a limit of its own beside that one,
 * which is the same from everywhere.
 *
 * @throws `rate_limit_reached`, and what `act` throws
 */
export async function withPassword<T>(
  { clients, signInFailures }: { readonly clients: Pick<Clients, 'accounts'>; readonly signInFailures: SignInFailures },
  { accountId, clientIp, call }: Prover,
  act: () => Promise<T>,
): Promise<T> {
  const { account } = await clients.accounts.getAccount({ accountId }, call);
  const attempt = await signInFailures.begin(account?.email ?? '', clientIp);
  try {
    const done = await act();
    await signInFailures.takeBack(attempt);
    return done;
  } catch (err) {
    if (!WRONG_PASSWORD.has(fromConnectError(err)?.reason ?? '')) await signInFailures.takeBack(attempt);
    throw err;
  }
}
