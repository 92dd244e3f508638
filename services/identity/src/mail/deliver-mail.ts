import { type Account, lockAccount, selectAccount, selectAccountBy } from '../account/account.store.ts';
import type { IdentityContext } from '../context.ts';
import { linkLimitReached, linkToken } from './link.ts';
import { assignMail, finishMail, type MailRow, selectPendingMail } from './mail.store.ts';
import { composeMail } from './mail-text.ts';
import type { SendMail } from './smtp.ts';

/** Sends a mail of the outbox unless it is sent, expired or void. It may be repeated. */
export async function deliverMail(ctx: IdentityContext, id: string, send: SendMail, publicUrl: string): Promise<void> {
  const mail = await selectPendingMail(ctx.db, id, ctx.clock());
  if (!mail) return;
  const account = await (mail.account_id === null ? findResettable(ctx, mail) : selectAccount(ctx.db, mail.account_id));
  if (account) {
    // An account's own spelling of its address: mail servers may tell cases apart.
    const to = mail.kind === 'password_reset' ? account.email : mail.recipient;
    const facts = { username: account.username, publicUrl, token: linkToken(ctx, id) };
    const isSent = await send({ id, to, ...composeMail(mail.kind, facts) });
    if (!isSent) ctx.logger.info({ mailId: id, accountId: account.id }, 'the mail server rejects the recipient of a mail');
  }
  await finishMail(ctx.db, id, ctx.clock());
}

/** The account that a reset is for, below its limit of mails. The mail is its own then. */
async function findResettable(ctx: IdentityContext, { id, recipient }: MailRow): Promise<Account | undefined> {
  const account = await selectAccountBy(ctx.db, 'email', recipient);
  if (!account) return undefined;
  return ctx.db.transaction().execute(async (tx) => {
    const current = await lockAccount(tx, account.id);
    if (current?.email !== account.email || (await linkLimitReached(ctx, tx, { accountId: account.id }))) return undefined;
    await assignMail(tx, id, account.id);
    return account;
  });
}
