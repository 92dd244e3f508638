import { newId, parseId } from '@latchkey/kit/id';
import type { Kysely } from 'kysely';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { sessionEpoch } from '../epoch/epoch.ts';
import { deleteSession, deleteSessionOfToken, deleteSessionsOf, insertSession } from './session.store.ts';
import { sessionEnd } from './session-lifetime.ts';
import { createSessionToken, csrfTokenOf, hashSessionToken } from './session-token.ts';

/** A session just opened. Its token is not stored and is never shown again. */
export interface OpenedSession {
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
  return { token: token.text, csrfToken: csrfTokenOf(ctx.csrfKey, id), expiresAt };
}

/** Ends a session for every request from the next one on. What is no session of the account has ended already. */
export async function endSession(ctx: IdentityContext, accountId: string, sessionId: string): Promise<void> {
  const [account, session] = [parseId(accountId), parseId(sessionId)];
  if (!account || !session) return;
  const tokenHash = await deleteSession(ctx.db, account, session);
  if (tokenHash) await endEpochs(ctx, [tokenHash]);
}

/** Ends the session of a token that a client has in its cookie, if there is one, for every request from the next one on. */
export async function endSessionOfToken(ctx: IdentityContext, token: string): Promise<void> {
  const tokenHash = hashSessionToken(token);
  if (tokenHash && (await deleteSessionOfToken(ctx.db, tokenHash))) await endEpochs(ctx, [tokenHash]);
}

/** Ends every session of an account, for every request from the next one on; answers how many there were. */
export async function endAllSessions(ctx: IdentityContext, accountText: string): Promise<number> {
  const accountId = parseId(accountText);
  if (!accountId) return 0;
  const tokenHashes = await ctx.db.transaction().execute((tx) => deleteSessionsOf(tx, accountId, undefined));
  await endEpochs(ctx, tokenHashes);
  return tokenHashes.length;
}

/** Makes every gateway forget sessions that were removed. It must follow the commit (see {@link IdentityContext.epochs}). */
export async function endEpochs(ctx: IdentityContext, tokenHashes: readonly Buffer[]): Promise<void> {
  if (tokenHashes.length > 0) await ctx.epochs.end(...tokenHashes.map(sessionEpoch));
}
