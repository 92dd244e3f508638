import { lockAccount } from '../account/account.store.ts';
import { type ActingContext, recordAccount } from '../audit/audit.ts';
import { errors } from '../errors.ts';
import { deleteSessionsOf } from '../session/session.store.ts';
import { endEpochs } from '../session/session.ts';
import { deleteTwoFactor, lockTwoFactor } from '../two-factor/two-factor.store.ts';
import type { Command } from './command.ts';
import { accountJson, countOf } from './describe.ts';
import { findAccount } from './find-account.ts';

/** Turns the second factor of an account off, for an owner who has lost both the authenticator and the recovery codes. */
export const twoFactorOffCommand: Command = {
  usage: 'ACCOUNT',
  summary: 'turn two-factor authentication off, which ends all sessions of the account',
  positionals: ['ACCOUNT'],
  options: {},
  async run({ ctx, positionals }) {
    const account = await findAccount(ctx, positionals[0] ?? '');
    const ended = await turnTwoFactorOff(ctx, account.id);
    const whose = `${account.username} (${account.email})`;
    return {
      text:
        ended === undefined
          ? `Two-factor authentication of ${whose} was off already.`
          : `Turned two-factor authentication of ${whose} off and ended ${countOf(ended, 'session')}.`,
      json: {
        account: accountJson({ ...account, twoFactorEnabled: false }),
        changed: ended !== undefined,
        endedSessions: ended ?? 0,
      },
    };
  },
};

/**
 * Removes the second factor of an account with its recovery codes, and ends its sessions. One that is set up and not enabled stays, with the failures
 * that it counts.
 *
 * @returns how many sessions were ended; undefined where the account has no second factor, which changes nothing
 * @throws `account_not_found`
 */
export async function turnTwoFactorOff(ctx: ActingContext, accountId: string): Promise<number | undefined> {
  const ended = await ctx.db.transaction().execute(async (tx) => {
    // Sign-ins hold the account too, so that none opens a session by the rules of before.
    if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
    if (!(await lockTwoFactor(tx, accountId))?.enabled_at) return undefined;
    await deleteTwoFactor(tx, accountId);
    const sessions = await deleteSessionsOf(tx, accountId, undefined);
    await recordAccount(ctx, tx, accountId, 'account.two_factor_disabled', { endedSessions: sessions.length });
    return sessions;
  });
  await endEpochs(ctx, ended ?? []);
  return ended?.length;
}
