import { lockAccount, updatePasswordHash } from '../account/account.store.ts';
import { isPassword } from '../account/account-rules.ts';
import type { IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import { deleteSessionsOf } from '../session/session.store.ts';
import { endEpochs } from '../session/session.ts';
import type { Command } from './command.ts';
import { accountJson, countOf } from './describe.ts';
import { findAccount } from './find-account.ts';
import { chooseNewPassword, GENERATE, tellNewPassword } from './new-password.ts';

/** Gives an account another password. */
export const resetPasswordCommand: Command = {
  usage: 'ACCOUNT [--generate]',
  summary: 'set another password, which ends all sessions of the account',
  positionals: ['ACCOUNT'],
  options: GENERATE,
  async run(call) {
    const account = await findAccount(call.ctx, call.positionals[0] ?? '');
    const chosen = await chooseNewPassword(call);
    const ended = await resetPassword(call.ctx, account.id, chosen.password);
    const told = tellNewPassword(chosen);
    return {
      text: `Set another password for ${account.username} (${account.email}) and ended ${countOf(ended, 'session')}.${told.text}`,
      json: { account: accountJson(account), endedSessions: ended, ...told.json },
    };
  },
};

/**
 * Sets the password of an account and ends its sessions. A sign-in with the earlier password that is under way either has its session ended here or
 * opens none (`openSessionOf`). Management keys stay.
 *
 * @returns how many sessions were ended
 * @throws `password_invalid`, `account_not_found`
 */
export async function resetPassword(ctx: IdentityContext, accountId: string, password: string): Promise<number> {
  if (!isPassword(password)) throw errors.password_invalid();
  const passwordHash = await ctx.passwords.hash(password);
  const ended = await ctx.db.transaction().execute(async (tx) => {
    if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
    await updatePasswordHash(tx, accountId, passwordHash);
    return deleteSessionsOf(tx, accountId, undefined);
  });
  await endEpochs(ctx, ended);
  return ended.length;
}
