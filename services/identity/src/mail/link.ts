import { hash } from 'node:crypto';
import { MAIL_LINK_MINUTES, MAILS_PER_HOUR_MAX } from '@latchkey/contract/limits';
import { hmac } from '@latchkey/kit/crypto/secrets';
import { newId } from '@latchkey/kit/validation/id';
import type { IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import { insertMail, type LinkHolder, type MailRow, selectLatestLink, selectLink } from './mail.store.ts';

const LIFETIME_MS = MAIL_LINK_MINUTES * 60_000;
/** Window of the limit; older mails are deleted. */
export const LINKS_WINDOW_MS = 60 * 60_000;
/** 192 bits: a link to a local server then fits in an unfolded line of a mail (76 characters). */
const TOKEN_BYTES = 24;
const TOKEN = /^[A-Za-z0-9_-]{32}$/;

/** The token of a mail's link. It is derived when the mail is sent, so that Redis never has it. */
export function linkToken({ mailLinkKey }: Pick<IdentityContext, 'mailLinkKey'>, mailId: string): string {
  return hmac(mailLinkKey, mailId).subarray(0, TOKEN_BYTES).toString('base64url');
}

/** Adds a mail to the outbox; returns its id. Only the hash of its token is stored. */
export async function addMail(
  ctx: IdentityContext,
  tx: Db,
  { kind, recipient, accountId }: Pick<MailRow, 'kind' | 'recipient'> & { readonly accountId?: string },
): Promise<string> {
  const [id, created_at] = [newId(), ctx.clock()];
  const expires_at = new Date(created_at.getTime() + LIFETIME_MS);
  const token_hash = hash('sha256', linkToken(ctx, id), 'buffer');
  await insertMail(tx, { id, kind, account_id: accountId ?? null, recipient, token_hash, created_at, expires_at });
  return id;
}

/** The rate-limit error of a further mail with a link; undefined below the limit. */
export async function linkLimitReached({ clock }: IdentityContext, tx: Db, holder: LinkHolder) {
  const nowMs = clock().getTime();
  const blocking = await selectLatestLink(tx, holder, MAILS_PER_HOUR_MAX, new Date(nowMs - LINKS_WINDOW_MS));
  if (!blocking) return undefined;
  const retryMs = blocking.getTime() + LINKS_WINDOW_MS - nowMs;
  return errors.mail_limit_reached({ policy: 'mails', limit: MAILS_PER_HOUR_MAX, windowMs: LINKS_WINDOW_MS, retryMs });
}

/**
 * The account and the address of a valid link. To use it, lock the account before, and make all its
 * links invalid with `expireLinks` after, as each change of a password or an email does.
 * @throws `link_invalid`
 */
export async function findLink({ clock }: IdentityContext, db: Db, kind: MailRow['kind'], token: string) {
  const link = TOKEN.test(token) ? await selectLink(db, kind, hash('sha256', token, 'buffer'), clock()) : undefined;
  if (!link) throw errors.link_invalid();
  return link;
}
