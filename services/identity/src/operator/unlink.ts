import { DomainError } from '@latchkey/kit/errors';
import { unlink } from '../oidc/links.ts';
import type { Command } from './command.ts';
import { accountJson, countOf } from './describe.ts';
import { findAccount } from './find-account.ts';
import { Refused } from './outcome.ts';

/** Takes a way to sign in from an account. */
export const unlinkCommand: Command = {
  usage: 'ACCOUNT ISSUER [--subject SUBJECT]',
  summary:
    'remove the links of the account to an OpenID Connect issuer, named as list-links shows it or by its name, or one of them, which ends all sessions',
  positionals: ['ACCOUNT', 'ISSUER'],
  options: { subject: { type: 'string' } },
  async run({ ctx, positionals: [name = '', issuer = ''], values }) {
    const account = await findAccount(ctx, name);
    const subject = values.subject === undefined ? undefined : String(values.subject);
    const whose = `${account.username} (${account.email})`;
    const unlinking = unlink(ctx, account.id, { issuer, subject }, { mayBeLast: true });
    const { removed, endedSessions } = await unlinking.catch((err: unknown) => {
      const isUnknown = err instanceof DomainError && err.reason === 'oidc_link_not_found';
      throw isUnknown ? new Refused(err.reason, `${whose} has no such link.`) : err;
    });
    return {
      text: `Removed ${countOf(removed, 'link')} of ${whose} and ended ${countOf(endedSessions, 'session')}.`,
      json: { account: accountJson(account), removedLinks: removed, endedSessions },
    };
  },
};
