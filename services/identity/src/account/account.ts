import { runTransaction } from '@latchkey/audit/transaction';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import { newId, parseId, toId } from '@latchkey/kit/validation/id';
import type { SignUpRequest } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { asSession, recordAction } from '../audit/actions.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { expireLinks } from '../mail/mail.store.ts';
import { deleteLinksOf } from '../oidc/oidc-link.store.ts';
import { errors } from '../proto-errors.ts';
import { endSessionsOf, type OpenedSession, openSession } from '../session/session.ts';
import * as store from './account.store.ts';
import { isEmail, isPassword, isUsername } from './account-rules.ts';

type Account = store.Account;

export interface SignedIn {
  readonly account: Account;
  readonly session: OpenedSession;
}

type NewAccount = Pick<SignUpRequest, 'username' | 'email' | 'password'>;

/** Creates an account and its first session, and ends the client's previous one. */
export async function signUp(ctx: ActingContext, request: SignUpRequest): Promise<SignedIn> {
  checkNewAccount(request);
  if (ctx.signUp === 'closed') throw errors.sign_up_closed();
  return addAccount(ctx, request, async (tx, account) => {
    const session = await openSession(ctx, tx, account.id, request);
    const changes = { username: account.username, by: 'sign_up' };
    await recordAction(asSession(ctx, session.id), tx, { accountId: account.id }, 'account.created', changes);
    return { account, session };
  });
}

/** Creates an account without a session, for the operator: also where sign-up is closed. */
export async function createAccount(ctx: ActingContext, request: NewAccount): Promise<Account> {
  checkNewAccount(request);
  return addAccount(ctx, request, async (tx, account) => {
    const changes = { username: account.username, by: 'operator' };
    await recordAction(ctx, tx, { accountId: account.id }, 'account.created', changes);
    return account;
  });
}

function checkNewAccount({ username, email, password }: NewAccount): void {
  if (!isUsername(username) || !isEmail(email) || !isPassword(password)) throw errors.sign_up_invalid();
}

async function addAccount<T>(
  ctx: ActingContext,
  { username, email, password }: NewAccount,
  complete: (tx: Db, account: Account) => Promise<T>,
): Promise<T> {
  const [id, created_at] = [newId(), ctx.clock()];
  const password_hash = await ctx.passwords.hash(password, ctx.call);
  try {
    return await runTransaction(ctx.db, async (tx) =>
      complete(tx, await store.insertAccount(tx, { id, username, email, password_hash, created_at })),
    );
  } catch (err) {
    const isTaken = isUniqueViolation(err, 'account_username') || isUniqueViolation(err, 'account_email');
    throw isTaken ? errors.account_exists() : err;
  }
}

/** @throws `account_not_found`, also for text other than a UUID */
export async function getAccount({ db }: IdentityContext, accountText: string): Promise<Account> {
  const account = await store.selectAccount(db, toId(accountText));
  if (!account) throw errors.account_not_found();
  return account;
}

/** The account with that email, username or id; no text can be two of these. */
export async function findAccount({ db }: IdentityContext, name: string): Promise<Account | undefined> {
  if (isEmail(name)) return store.selectAccountBy(db, 'email', name);
  if (isUsername(name)) return store.selectAccountBy(db, 'username', name);
  const id = parseId(name);
  return id === undefined ? undefined : store.selectAccount(db, id);
}

export async function listAccounts({ db }: IdentityContext, after: string | undefined, limit: number) {
  const rows = await store.selectAccounts(db, after, limit + 1);
  const accounts = rows.slice(0, limit);
  return { accounts, next: rows.length > limit ? (accounts.at(-1)?.id ?? null) : null };
}

/**
 * Sets the password of an account and ends its sessions, for the operator. It also removes the
 * links to issuers unless they are to stay: an intruder may have added one. Management keys stay.
 */
export async function resetPassword(ctx: ActingContext, accountId: string, password: string, keepLinks: boolean) {
  if (!isPassword(password)) throw errors.password_invalid();
  const password_hash = await ctx.passwords.hash(password, ctx.call);
  return runTransaction(ctx.db, async (tx) => {
    if (!(await store.lockAccount(tx, accountId))) throw errors.account_not_found();
    await store.updateAccount(tx, accountId, { password_hash });
    await expireLinks(tx, accountId);
    const removedLinks = keepLinks ? 0 : await deleteLinksOf(tx, accountId);
    const counts = { endedSessions: await endSessionsOf(ctx, tx, accountId), removedLinks };
    await recordAction(ctx, tx, { accountId }, 'account.password_reset', counts);
    return counts;
  });
}
