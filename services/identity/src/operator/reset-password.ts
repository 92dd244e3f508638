import { lockAccount, updatePasswordHash } from '../account/account.store.ts';
import { isPassword } from '../account/account-rules.ts';
import { type ActingContext, recordAccount } from '../audit/audit.ts';
import { errors } from '../errors.ts';
import { deleteLinksOf } from '../oidc/oidc-link.store.ts';
import { deleteSessionsOf } from '../session/session.store.ts';
import { endEpochs } from '../session/session.ts';
import type { Command } from './command.ts';
import { accountJson, countOf } from './describe.ts';
import { findAccount } from './find-account.ts';
import { chooseNewPassword, GENERATE, tellNewPassword } from './new-password.ts';

/** Gives an account another password. */
export const resetPasswordCommand: Command = {
  usage: 'ACCOUNT [--generate] [--keep-links]',
  summary: 'set another password, which ends all sessions of the account and removes its links to OpenID Connect issuers',
  positionals: ['ACCOUNT'],
  options: { ...GENERATE, 'keep-links': { type: 'boolean' } },
  async run(call) {
    const account = await findAccount(call.ctx, call.positionals[0] ?? '');
    const chosen = await chooseNewPassword(call);
    const keepLinks = call.values['keep-links'] === true;
    const { endedSessions, removedLinks } = await resetPassword(call.ctx, account.id, { password: chosen.password, keepLinks });
    const links = keepLinks ? 'kept its links' : `removed ${countOf(removedLinks, 'link')}`;
    const told = tellNewPassword(chosen);
    return {
      text: `Set another password for ${account.username} (${account.email}), ended ${countOf(endedSessions, 'session')} and ${links}.${told.text}`,
      json: { account: accountJson(account), endedSessions, removedLinks, ...told.json },
    };
  },
};

/**
 * Sets the password of an account, ends its sessions and, unless they are to be kept, removes its links, by which whoever had a session could have made
 * themselves a way back in. A sign-in with the earlier password that is under way either has its session ended here or
 * opens none (`openSessionOf`). Management keys stay.
 *
 * @returns how many sessions were ended, and links removed
 * @throws `password_invalid`, `account_not_found`
 */
export async function resetPassword(
  ctx: ActingContext,
  accountId: string,
  { password, keepLinks }: { readonly password: string; readonly keepLinks: boolean },
): Promise<{ endedSessions: number; removedLinks: number }> {
  if (!isPassword(password)) throw errors.password_invalid();
  const passwordHash = await ctx.passwords.hash(password);
  const { ended, removedLinks } = await ctx.db.transaction().execute(async (tx) => {
    if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
    await updatePasswordHash(tx, accountId, passwordHash);
    const removed = keepLinks ? 0 : await deleteLinksOf(tx, accountId);
    const sessions = await deleteSessionsOf(tx, accountId, undefined);
    const changes = { endedSessions: sessions.length, removedLinks: removed };
    await recordAccount(ctx, tx, accountId, 'account.password_reset', changes);
    return { ended: sessions, removedLinks: removed };
  });
  await endEpochs(ctx, ended);
  return { endedSessions: ended.length, removedLinks };
}
