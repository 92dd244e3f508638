import { runTransaction } from '@latchkey/audit/transaction';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import { parseId } from '@latchkey/kit/validation/id';
import type { ConfirmEmailChangeRequest, StartEmailChangeRequest } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { addMail, findLink, linkLimitReached } from '../mail/link.ts';
import { expireLinks, lockRecipient } from '../mail/mail.store.ts';
import type { MailQueue } from '../mail/mail-queue.ts';
import { errors } from '../proto-errors.ts';
import { lockAccount, selectAccountBy, updateAccount } from './account.store.ts';
import { isEmail } from './account-rules.ts';
import { runAsVerifiedOwner } from './verify-owner.ts';

/**
 * Sends a mail with a link to a new address for the verified owner, and a notice to the current
 * one. Rejections after the proof use up no code.
 * @throws `mail_not_configured`, `email_invalid`, `account_exists`, `mail_limit_reached`, and what
 * {@link runAsVerifiedOwner} throws
 */
export async function startEmailChange(ctx: ActingContext, mails: MailQueue | undefined, request: StartEmailChangeRequest) {
  if (!mails) throw errors.mail_not_configured();
  const { email: recipient } = request;
  if (!isEmail(recipient)) throw errors.email_invalid();
  const ids = await runAsVerifiedOwner(ctx, request, async (tx, { id: accountId, email }) => {
    const holder = await selectAccountBy(tx, 'email', recipient);
    if (holder && holder.id !== accountId) throw errors.account_exists();
    await lockRecipient(tx, recipient);
    const reached = (await linkLimitReached(ctx, tx, { accountId })) ?? (await linkLimitReached(ctx, tx, { recipient }));
    if (reached) throw reached;
    const link = await addMail(ctx, tx, { kind: 'email_change', recipient, accountId });
    return [link, await addMail(ctx, tx, { kind: 'email_notice', recipient: email, accountId })];
  });
  mails.add(...ids);
}

/**
 * Makes the address that a link was sent to the email of the account.
 * @throws `mail_not_configured`, `link_invalid` also for a link of another account,
 *   `account_exists`
 */
export async function confirmEmailChange(ctx: ActingContext, mails: MailQueue | undefined, request: ConfirmEmailChangeRequest) {
  if (!mails) throw errors.mail_not_configured();
  const accountId = parseId(request.accountId);
  if (!accountId) throw errors.link_invalid();
  await setEmail(ctx, accountId, async (tx) => {
    const link = await findLink(ctx, tx, 'email_change', request.token);
    if (link.accountId !== accountId) throw errors.link_invalid();
    return link.recipient;
  });
}

/**
 * Sets the email of an account without a mail, for the operator.
 * @throws `account_not_found`, `account_exists`
 */
export async function changeEmail(ctx: ActingContext, accountId: string, email: string): Promise<void> {
  await setEmail(ctx, accountId, async () => email);
}

async function setEmail(ctx: ActingContext, accountId: string, chooseEmail: (tx: Db) => Promise<string>): Promise<void> {
  try {
    await runTransaction(ctx.db, async (tx) => {
      if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
      await updateAccount(tx, accountId, { email: await chooseEmail(tx) });
      await expireLinks(tx, accountId);
      await recordAction(ctx, tx, { accountId }, 'account.email_changed');
    });
  } catch (err) {
    throw isUniqueViolation(err, 'account_email') ? errors.account_exists() : err;
  }
}
