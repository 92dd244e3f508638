import { runTransaction } from '@latchkey/audit/transaction';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import { newId } from '@latchkey/kit/validation/id';
import { insertAccount } from '../account/account.store.ts';
import { asSession, recordAction } from '../audit/actions.ts';
import type { ActingContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { openSession, type SessionClient } from '../session/session.ts';
import { type Person, withSuffix } from './claims.ts';
import { insertLink, SUBJECT_INDEX, selectLinkedAccount } from './oidc-link.store.ts';

/** Usernames tried for one account. All but the first have a random suffix of 30 bits. */
const USERNAMES_TRIED_MAX = 5;

/**
 * Creates an account without a password for an unlinked person, and opens its first session. It
 * never links an existing account by email: an issuer could claim any email.
 * @returns undefined where the person was linked meanwhile
 */
export async function createLinkedAccount(ctx: ActingContext, person: Person, client: SessionClient) {
  const { email } = person;
  if (ctx.signUp === 'closed') throw errors.sign_up_closed();
  if (email === undefined) throw errors.oidc_email_unverified();
  for (let tried = 0; tried < USERNAMES_TRIED_MAX; tried += 1) {
    const username = tried === 0 ? person.username : withSuffix(person.username);
    const signedIn = await insert(ctx, { ...person, email, username }, client);
    if (signedIn === 'username taken') continue;
    if (signedIn === 'linked') return undefined;
    return signedIn;
  }
  throw errors.account_exists();
}

async function insert(ctx: ActingContext, person: Person & { readonly email: string }, client: SessionClient) {
  const { username, email, issuer, subject, pictureUrl: picture_url = null } = person;
  const [id, created_at] = [newId(), ctx.clock()];
  try {
    return await runTransaction(ctx.db, async (tx) => {
      const account = await insertAccount(tx, { id, username, email, password_hash: null, picture_url, created_at });
      await insertLink(tx, { issuer, subject, account_id: id, created_at });
      const session = await openSession(ctx, tx, id, client);
      const changes = { username, by: 'oidc', issuer };
      await recordAction(asSession(ctx, session.id), tx, { accountId: id }, 'account.created', changes);
      return { account, session };
    });
  } catch (err) {
    if (isUniqueViolation(err, 'account_username')) return 'username taken';
    if (isUniqueViolation(err, SUBJECT_INDEX)) return 'linked';
    if (!isUniqueViolation(err, 'account_email')) throw err;
    // A concurrent first sign-in of the same person may have taken the email.
    if (await selectLinkedAccount(ctx.db, person)) return 'linked';
    throw errors.oidc_email_taken();
  }
}
