import { isUniqueViolation } from '@latchkey/kit/database/database';
import { newId } from '@latchkey/kit/id';
import { insertAccount } from '../account/account.store.ts';
import { getAccount, type SignedIn } from '../account/account.ts';
import { type ActingContext, asSession, recordAccount } from '../audit/audit.ts';
import { errors } from '../errors.ts';
import { endSessionOfToken, type OpenedSession, openSession } from '../session/session.ts';
import type { Person } from './claims.ts';
import { insertLink, SUBJECT_INDEX, selectLinkedAccountId } from './oidc-link.store.ts';
import { usernameFrom, withSuffix } from './username.ts';

/** Usernames tried for one account. All but the first end with 30 random bits. */
const USERNAMES_TRIED_MAX = 5;

/**
 * Makes an account of somebody whom no account is linked to, without a password, and opens its first session. An account that has the email already is
 * left alone: whoever runs an issuer could make any email theirs.
 *
 * @returns undefined where the subject was linked to an account meanwhile
 * @throws `sign_up_closed`, `oidc_email_unverified`, `oidc_email_taken`
 */
export async function createAccountOf(
  ctx: ActingContext,
  person: Person,
  previousSessionToken: string,
): Promise<SignedIn | undefined> {
  const { email } = person;
  if (ctx.signUp === 'closed') throw errors.sign_up_closed();
  if (email === undefined) throw errors.oidc_email_unverified();
  const wanted = usernameFrom(person.names);
  for (let tried = 0; tried < USERNAMES_TRIED_MAX; tried += 1) {
    const username = tried === 0 ? wanted : withSuffix(wanted, ctx.random);
    const id = newId();
    const inserted = await insert(ctx, { ...person, email, username, id });
    if (inserted === 'username taken') continue;
    if (inserted === 'linked') return undefined;
    await endSessionOfToken(ctx, previousSessionToken);
    ctx.sessionSweeper.sweep();
    return { account: await getAccount(ctx, id), session: inserted };
  }
  throw errors.account_exists();
}

interface NewAccount extends Person {
  readonly id: string;
  readonly username: string;
  readonly email: string;
}

async function insert(ctx: ActingContext, account: NewAccount): Promise<OpenedSession | 'username taken' | 'linked'> {
  const { id, username, email, issuer, subject, pictureUrl } = account;
  const created_at = ctx.clock();
  try {
    return await ctx.db.transaction().execute(async (tx) => {
      await insertAccount(tx, { id, username, email, password_hash: null, picture_url: pictureUrl ?? null, created_at });
      await insertLink(tx, { issuer, subject, account_id: id, created_at });
      const opened = await openSession(ctx, tx, id);
      await recordAccount(asSession(ctx, opened.id), tx, id, 'account.created', { username, by: 'oidc', issuer });
      return opened;
    });
  } catch (err) {
    if (isUniqueViolation(err, 'account_username')) return 'username taken';
    if (isUniqueViolation(err, SUBJECT_INDEX)) return 'linked';
    if (!isUniqueViolation(err, 'account_email')) throw err;
    // The email may be taken by another first sign-in of the same person.
    if ((await selectLinkedAccountId(ctx.db, account)) !== undefined) return 'linked';
    throw errors.oidc_email_taken();
  }
}
