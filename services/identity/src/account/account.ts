import { isUniqueViolation } from '@latchkey/kit/database/database';
import { newId, parseId } from '@latchkey/kit/validation/id';
import { type ActingContext, asSession, recordAccount } from '../audit/audit.ts';
import type { IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { deleteLinksOf } from '../oidc/oidc-link.store.ts';
import { deleteSessionsOf } from '../session/session.store.ts';
import { endEpochs, endPreviousSession, type OpenedSession, openSession } from '../session/session.ts';
import {
  type AccountRow,
  insertAccount,
  lockAccount,
  selectAccount,
  selectAccountBy,
  selectAccounts,
  UNIQUE_INDEXES,
  updatePasswordHash,
} from './account.store.ts';
import { isEmail, isPassword, isUsername } from './account-rules.ts';

export interface Account {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly avatarId: string | undefined;
  readonly pictureUrl: string | undefined;
  readonly twoFactorEnabled: boolean;
  readonly createdAt: Date;
}

export interface SignedIn {
  readonly account: Account;
  readonly session: OpenedSession;
}

export interface NewAccount {
  readonly username: string;
  readonly email: string;
  readonly password: string;
}

/**
 * Creates an account and its first session, and ends the client's previous one (decisions 4).
 * @param request with the token in the client's session cookie; empty for none
 * @throws `sign_up_invalid`, `sign_up_closed`, `account_exists`
 */
export async function signUp(
  ctx: ActingContext,
  request: NewAccount & { readonly previousSessionToken: string },
): Promise<SignedIn> {
  checkNewAccount(request);
  if (ctx.signUp === 'closed') throw errors.sign_up_closed();
  const { account, result: session } = await addAccount(ctx, request, async (tx, id) => {
    const opened = await openSession(ctx, tx, id);
    await recordAccount(asSession(ctx, opened.id), tx, id, 'account.created', { username: request.username, by: 'sign_up' });
    return opened;
  });
  await endPreviousSession(ctx, request.previousSessionToken);
  return { account, session };
}

/**
 * Creates an account without a session, for the operator: also where sign-up is closed.
 * @throws `sign_up_invalid`, `account_exists`
 */
export async function createAccount(ctx: ActingContext, request: NewAccount): Promise<Account> {
  checkNewAccount(request);
  const changes = { username: request.username, by: 'operator' };
  const { account } = await addAccount(ctx, request, (tx, id) => recordAccount(ctx, tx, id, 'account.created', changes));
  return account;
}

function checkNewAccount({ username, email, password }: NewAccount): void {
  if (!isUsername(username) || !isEmail(email) || !isPassword(password)) throw errors.sign_up_invalid();
}

async function addAccount<T>(
  ctx: IdentityContext,
  { username, email, password }: NewAccount,
  addMore: (tx: Db, accountId: string) => Promise<T>,
): Promise<{ account: Account; result: T }> {
  const [id, createdAt] = [newId(), ctx.clock()];
  const passwordHash = await ctx.passwords.hash(password);
  try {
    const result = await ctx.db.transaction().execute(async (tx) => {
      await insertAccount(tx, { id, username, email, password_hash: passwordHash, created_at: createdAt });
      return addMore(tx, id);
    });
    const account = { id, username, email, avatarId: undefined, pictureUrl: undefined, twoFactorEnabled: false, createdAt };
    return { account, result };
  } catch (err) {
    if (UNIQUE_INDEXES.some((index) => isUniqueViolation(err, index))) throw errors.account_exists();
    throw err;
  }
}

/** @throws `account_not_found`, also for text that is no UUID */
export async function getAccount(ctx: IdentityContext, accountText: string): Promise<Account> {
  const id = parseId(accountText);
  const row = id && (await selectAccount(ctx.db, id));
  if (!row) throw errors.account_not_found();
  return toAccount(row);
}

/** The account with that email, username or id; no text can be two of these. */
export async function findAccount({ db }: IdentityContext, name: string): Promise<Account | undefined> {
  const id = parseId(name);
  const byName = () => (isUsername(name) ? selectAccountBy(db, 'username', name) : id && selectAccount(db, id));
  const row = await (isEmail(name) ? selectAccountBy(db, 'email', name) : byName());
  return row ? toAccount(row) : undefined;
}

/** A page of all accounts, and the id that the next page begins after. */
export async function listAccounts(
  { db }: IdentityContext,
  after: string | undefined,
  limit: number,
): Promise<{ accounts: Account[]; next: string | null }> {
  const rows = await selectAccounts(db, after, limit + 1);
  const accounts = rows.slice(0, limit).map(toAccount);
  return { accounts, next: rows.length > limit ? (accounts.at(-1)?.id ?? null) : null };
}

/**
 * Sets the password of an account and ends its sessions, for the operator. It also removes the
 * links to issuers unless they are to stay: an intruder may have added one. Management keys stay.
 * @throws `password_invalid`, `account_not_found`
 */
export async function resetPassword(
  ctx: ActingContext,
  accountId: string,
  { password, keepLinks }: { readonly password: string; readonly keepLinks: boolean },
): Promise<{ endedSessions: number; removedLinks: number }> {
  if (!isPassword(password)) throw errors.password_invalid();
  const passwordHash = await ctx.passwords.hash(password);
  const { ended, removedLinks } = await ctx.db.transaction().execute(async (tx) => {
    if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
    await updatePasswordHash(tx, accountId, passwordHash);
    const removed = keepLinks ? 0 : await deleteLinksOf(tx, accountId);
    const sessions = await deleteSessionsOf(tx, accountId);
    const changes = { endedSessions: sessions.length, removedLinks: removed };
    await recordAccount(ctx, tx, accountId, 'account.password_reset', changes);
    return { ended: sessions, removedLinks: removed };
  });
  await endEpochs(ctx, ended);
  return { endedSessions: ended.length, removedLinks };
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
