import { isUniqueViolation } from '@latchkey/kit/database/database';
import { newId, parseId } from '@latchkey/kit/id';
import type { Kysely } from 'kysely';
import { type ActingContext, asSession, recordAccount } from '../audit/audit.ts';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { endSessionOfToken, type OpenedSession, openSession } from '../session/session.ts';
import { type AccountRow, insertAccount, selectAccount, UNIQUE_INDEXES } from './account.store.ts';
import { isEmail, isPassword, isUsername } from './account-rules.ts';

/** An account as its owner sees it. */
export interface Account {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  /** Id of the avatar that was uploaded last. */
  readonly avatarId: string | undefined;
  /** The image that the account's OpenID Connect issuer named. */
  readonly pictureUrl: string | undefined;
  /** Whether sign-in asks for a second factor. */
  readonly twoFactorEnabled: boolean;
  readonly createdAt: Date;
}

/** An account with the session that was just opened for it. */
export interface SignedIn {
  readonly account: Account;
  readonly session: OpenedSession;
}

/** What a new account is made of. */
export interface NewAccount {
  readonly username: string;
  readonly email: string;
  readonly password: string;
}

/** What somebody sends who wants an account. */
export interface SignUpRequest extends NewAccount {
  /** Token that the client has in its cookie; empty for none. */
  readonly previousSessionToken: string;
}

/**
 * Creates an account and its first session (decisions 4). Of sign-ups at once for one name or email, one wins. The session that the client had ends.
 *
 * @throws `sign_up_invalid`, `sign_up_closed`, `account_exists`
 */
export async function signUp(ctx: ActingContext, request: SignUpRequest): Promise<SignedIn> {
  checkNewAccount(request);
  if (ctx.signUp === 'closed') throw errors.sign_up_closed();
  const { account, result: session } = await addAccount(ctx, request, async (tx, id) => {
    const opened = await openSession(ctx, tx, id);
    await recordAccount(asSession(ctx, opened.id), tx, id, 'account.created', { username: request.username, by: 'sign_up' });
    return opened;
  });
  await endSessionOfToken(ctx, request.previousSessionToken);
  return { account, session };
}

/**
 * Creates an account without a session, whether sign-up is open or closed: it is for who runs the service. Of several at once for one name or
 * email, one wins.
 *
 * @throws `sign_up_invalid`, `account_exists`
 */
export async function createAccount(ctx: ActingContext, request: NewAccount): Promise<Account> {
  checkNewAccount(request);
  const { account } = await addAccount(ctx, request, (tx, id) =>
    recordAccount(ctx, tx, id, 'account.created', { username: request.username, by: 'operator' }),
  );
  return account;
}

function checkNewAccount({ username, email, password }: NewAccount): void {
  if (!isUsername(username) || !isEmail(email) || !isPassword(password)) throw errors.sign_up_invalid();
}

/** Stores an account, and in the same transaction what belongs to it. Throws `account_exists`. */
async function addAccount<T>(
  ctx: IdentityContext,
  { username, email, password }: NewAccount,
  addMore: (tx: Kysely<IdentityDatabase>, accountId: string) => Promise<T>,
): Promise<{ account: Account; result: T }> {
  const none = { avatarId: undefined, pictureUrl: undefined, twoFactorEnabled: false };
  const account = { id: newId(), username, email, ...none, createdAt: ctx.clock() };
  const passwordHash = await ctx.passwords.hash(password);
  try {
    const result = await ctx.db.transaction().execute(async (tx) => {
      const { id, createdAt } = account;
      await insertAccount(tx, { id, username, email, password_hash: passwordHash, created_at: createdAt });
      return addMore(tx, id);
    });
    return { account, result };
  } catch (err) {
    if (UNIQUE_INDEXES.some((index) => isUniqueViolation(err, index))) throw errors.account_exists();
    throw err;
  }
}

/**
 * One account.
 *
 * @throws `account_not_found`, also for text that is no UUID
 */
export async function getAccount(ctx: IdentityContext, accountId: string): Promise<Account> {
  const id = parseId(accountId);
  const row = id && (await selectAccount(ctx.db, id));
  if (!row) throw errors.account_not_found();
  return toAccount(row);
}

/** The account as its owner sees it. */
export function toAccount(row: AccountRow): Account {
  return {
    id: row.id,
    username: row.username,
    email: row.email,
    avatarId: row.avatar_id ?? undefined,
    pictureUrl: row.picture_url ?? undefined,
    twoFactorEnabled: row.two_factor_enabled,
    createdAt: row.created_at,
  };
}
