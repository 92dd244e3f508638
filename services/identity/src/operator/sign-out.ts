import { endAllSessions } from '../session/session.ts';
import type { Command } from './command.ts';
import { accountJson, countOf } from './describe.ts';
import { findAccount } from './find-account.ts';

/** Ends the sessions of an account. */
export const signOutCommand: Command = {
  usage: 'ACCOUNT',
  summary: 'end all sessions of the account',
  positionals: ['ACCOUNT'],
  options: {},
  async run({ ctx, positionals }) {
    const account = await findAccount(ctx, positionals[0] ?? '');
    const ended = await endAllSessions(ctx, account.id);
    return {
      text: `Ended ${countOf(ended, 'session')} of ${account.username} (${account.email}).`,
      json: { account: accountJson(account), endedSessions: ended },
    };
  },
};
