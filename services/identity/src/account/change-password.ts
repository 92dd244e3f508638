import { runTransaction } from '@latchkey/audit/transaction';
import type { ChangePasswordRequest, ResetPasswordRequest } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import { addMail, findLink, linkLimitReached } from '../mail/link.ts';
import { expireLinks, lockRecipient } from '../mail/mail.store.ts';
import type { MailQueue } from '../mail/mail-queue.ts';
import { errors } from '../proto-errors.ts';
import { endSessionsOf } from '../session/session.ts';
import { lockAccount, updateAccount } from './account.store.ts';
import { isEmail, isPassword } from './account-rules.ts';
import { runAsVerifiedOwner } from './verify-owner.ts';

/**
 * Sets another password for the verified owner, or the first one, and ends the account's other
 * sessions.
 * @throws `password_invalid`, and what {@link runAsVerifiedOwner} throws
 */
export async function changePassword(ctx: ActingContext, request: ChangePasswordRequest): Promise<void> {
  if (!isPassword(request.newPassword)) throw errors.password_invalid();
  // Before the proof, as a transaction must not wait for it.
  const password_hash = await ctx.passwords.hash(request.newPassword, ctx.call);
  await runAsVerifiedOwner(ctx, request, async (tx, { id: accountId }) => {
    await updateAccount(tx, accountId, { password_hash });
    await expireLinks(tx, accountId);
    const endedSessions = await endSessionsOf(ctx, tx, accountId, request.sessionId);
    await recordAction(ctx, tx, { accountId }, 'account.password_changed', { endedSessions });
  });
}

/**
 * Puts a mail for an address in the outbox. Whether an account has the address is found out when
 * the mail is sent, so that the work until the response does not show it.
 * @throws `mail_not_configured`, `email_invalid`
 */
export async function startPasswordReset(ctx: IdentityContext, mails: MailQueue | undefined, email: string): Promise<void> {
  if (!mails) throw errors.mail_not_configured();
  if (!isEmail(email)) throw errors.email_invalid();
  const id = await runTransaction(ctx.db, async (tx) => {
    await lockRecipient(tx, email);
    if (await linkLimitReached(ctx, tx, { recipient: email })) return undefined;
    return addMail(ctx, tx, { kind: 'password_reset', recipient: email });
  });
  if (id) mails.add(id);
}

/**
 * Sets another password with the token of a mail, and ends all sessions of the account.
 * @throws `password_invalid`, `link_invalid`
 */
export async function resetPasswordByLink(ctx: ActingContext, { token, newPassword }: ResetPasswordRequest): Promise<void> {
  if (!isPassword(newPassword)) throw errors.password_invalid();
  const { accountId } = await findLink(ctx, ctx.db, 'password_reset', token);
  const password_hash = await ctx.passwords.hash(newPassword, ctx.call);
  await runTransaction(ctx.db, async (tx) => {
    await lockAccount(tx, accountId);
    // Used or void meanwhile?
    await findLink(ctx, tx, 'password_reset', token);
    await updateAccount(tx, accountId, { password_hash });
    await expireLinks(tx, accountId);
    const endedSessions = await endSessionsOf(ctx, tx, accountId);
    await recordAction(ctx, tx, { accountId }, 'account.password_reset', { endedSessions });
  });
}
