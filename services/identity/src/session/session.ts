import { newId, parseId } from '@latchkey/kit/id';
import type { Kysely } from 'kysely';
import { type ActingContext, asSession, recordAccount } from '../audit/audit.ts';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { sessionEpoch } from '../epoch/epoch.ts';
import { deleteSession, deleteSessionOfToken, deleteSessionsOf, insertSession } from './session.store.ts';
import { sessionEnd } from './session-lifetime.ts';
import { createSessionToken, csrfTokenOf, hashSessionToken } from './session-token.ts';

/** A session just opened. Its token is not stored and is never shown again. */
export interface OpenedSession {
  /** Of its record; no secret. */
  readonly id: string;
  readonly token: string;
  readonly csrfToken: string;
  readonly expiresAt: Date;
}

/** Opens a session of an account, with a token of its own (decisions 4). */
export async function openSession(ctx: IdentityContext, db: Kysely<IdentityDatabase>, accountId: string): Promise<OpenedSession> {
  const id = newId();
  const now = ctx.clock();
  const token = createSessionToken(ctx.random);
  const expiresAt = sessionEnd(now);
  await insertSession(db, {
    id,
    account_id: accountId,
    token_hash: token.hash,
    created_at: now,
    last_seen_at: now,
    expires_at: expiresAt,
  });
  return { id, token: token.text, csrfToken: csrfTokenOf(ctx.csrfKey, id), expiresAt };
}

/** Ends a session for every request from the next one on. What is no session of the account has ended already. */
export async function endSession(ctx: ActingContext, accountId: string, sessionId: string): Promise<void> {
  const [account, session] = [parseId(accountId), parseId(sessionId)];
  if (!account || !session) return;
  const tokenHash = await ctx.db.transaction().execute(async (tx) => {
    const deleted = await deleteSession(tx, account, session);
    if (deleted) await recordAccount(ctx, tx, account, 'account.signed_out');
    return deleted;
  });
  if (tokenHash) await endEpochs(ctx, [tokenHash]);
}

/** Ends the session of a token that a client has in its cookie, if there is one, for every request from the next one on. */
export async function endSessionOfToken(ctx: ActingContext, token: string): Promise<void> {
  const tokenHash = hashSessionToken(token);
  if (!tokenHash) return;
  const ended = await ctx.db.transaction().execute(async (tx) => {
    const session = await deleteSessionOfToken(tx, tokenHash);
    // It is who shows the token that signs out, by signing in anew.
    if (session)
      await recordAccount(asSession(ctx, session.id), tx, session.accountId, 'account.signed_out', { because: 'signed_in' });
    return session !== undefined;
  });
  if (ended) await endEpochs(ctx, [tokenHash]);
}

/** Ends every session of an account, for every request from the next one on; answers how many there were. */
export async function endAllSessions(ctx: ActingContext, accountText: string): Promise<number> {
  const accountId = parseId(accountText);
  if (!accountId) return 0;
  const tokenHashes = await ctx.db.transaction().execute(async (tx) => {
    const deleted = await deleteSessionsOf(tx, accountId, undefined);
    if (deleted.length > 0)
      await recordAccount(ctx, tx, accountId, 'account.signed_out_everywhere', { sessions: deleted.length });
    return deleted;
  });
  await endEpochs(ctx, tokenHashes);
  return tokenHashes.length;
}

/** Makes every gateway forget sessions that were removed. It must follow the commit (see {@link IdentityContext.epochs}). */
export async function endEpochs(ctx: IdentityContext, tokenHashes: readonly Buffer[]): Promise<void> {
  if (tokenHashes.length > 0) await ctx.epochs.end(...tokenHashes.map(sessionEpoch));
}
