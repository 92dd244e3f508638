import { newId, parseId } from '@latchkey/kit/id';
import type { Kysely } from 'kysely';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { sessionEpoch } from '../epoch/epoch.ts';
import { deleteSession, insertSession } from './session.store.ts';
import { sessionEnd } from './session-lifetime.ts';
import { createSessionToken, csrfTokenOf } from './session-token.ts';

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
  if (tokenHash) await ctx.epochs.end(sessionEpoch(tokenHash));
}
