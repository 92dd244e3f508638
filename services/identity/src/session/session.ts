import { hash, type KeyObject, randomBytes } from 'node:crypto';
import { runTransaction } from '@latchkey/audit/transaction';
import { withoutInvisible } from '@latchkey/contract/invisible';
import { SESSIONS_LISTED_MAX } from '@latchkey/contract/page-size';
import { hmac } from '@latchkey/kit/crypto/secrets';
import { newId, parseId } from '@latchkey/kit/validation/id';
import type { EndSessionRequest, ListSessionsRequest, SignOutRequest } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { asSession, recordAction } from '../audit/actions.ts';
import { sessionEpoch } from '../authentication/principal-epoch.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import * as store from './session.store.ts';

const DAY_MS = 86_400_000;
export const IDLE_LIFETIME_MS = 7 * DAY_MS;
const ABSOLUTE_LIFETIME_MS = 30 * DAY_MS;
/** 256 random bits. */
const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export interface OpenedSession {
  readonly id: string;
  readonly token: string;
  readonly csrfToken: string;
  readonly expiresAt: Date;
  /** The token hash of the client's previous session, for {@link endEpochs} after the commit. */
  readonly ended: readonly Buffer[];
}

export interface SessionClient {
  readonly previousSessionToken: string;
  readonly userAgent: string;
}

/**
 * Opens a session, and ends the one that the client had before: in one transaction, as a failure
 * after the commit would reject a sign-in that is done.
 */
export async function openSession(ctx: ActingContext, tx: Db, accountId: string, from: SessionClient): Promise<OpenedSession> {
  const id = newId();
  const now = ctx.clock();
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const expiresAt = new Date(now.getTime() + ABSOLUTE_LIFETIME_MS);
  const times = { created_at: now, last_seen_at: now, expires_at: expiresAt };
  const client = { last_used_ip: ctx.origin.address ?? null, user_agent: toStoredUserAgent(from.userAgent) };
  const previous = hashSessionToken(from.previousSessionToken);
  const ended = previous ? await end(ctx, tx, { token_hash: previous }, { because: 'signed_in' }) : [];
  await store.insertSession(tx, { id, account_id: accountId, token_hash: hash('sha256', token, 'buffer'), ...times, ...client });
  return { id, token, csrfToken: csrfTokenOf(ctx.csrfKey, id), expiresAt, ended };
}

const USER_AGENT_LENGTH_MAX = 256;

/** A client's `User-Agent`, which may be any text, as it is stored; null if nothing is visible. */
export function toStoredUserAgent(text: string): string | null {
  return withoutInvisible(text.slice(0, USER_AGENT_LENGTH_MAX)).toWellFormed() || null;
}

export function isSessionAlive(session: Pick<store.SessionRow, 'last_seen_at' | 'expires_at'>, now: Date): boolean {
  return session.expires_at > now && session.last_seen_at > idleSince(now);
}

/** Ends a session from the next request on, if it exists. */
export async function endSession(ctx: ActingContext, { accountId, sessionId }: SignOutRequest): Promise<void> {
  const [account_id, id] = [parseId(accountId), parseId(sessionId)];
  if (!account_id || !id) return;
  await endEpochs(ctx, await runTransaction(ctx.db, (tx) => end(ctx, tx, { account_id, id })));
}

async function end(ctx: ActingContext, tx: Db, session: store.SessionRef, changes?: { readonly because: 'signed_in' }) {
  const deleted = await store.deleteSession(tx, session);
  if (!deleted) return [];
  const actor = changes ? asSession(ctx, deleted.id) : ctx;
  await recordAction(actor, tx, { accountId: deleted.account_id }, 'account.signed_out', changes);
  return [deleted.token_hash];
}

/** The open sessions of an account, up to 100: the calling one, then those used last. */
export async function listSessions({ db, clock }: IdentityContext, request: ListSessionsRequest) {
  const accountId = parseId(request.accountId);
  if (!accountId) return [];
  const now = clock();
  const open = { accountId, currentId: parseId(request.sessionId), now, idleSince: idleSince(now) };
  return store.selectOpenSessions(db, open, SESSIONS_LISTED_MAX);
}

/** Ends one session of an account from the next request on. Throws `session_not_found`. */
export async function endSessionOf(ctx: ActingContext, request: EndSessionRequest): Promise<void> {
  const [accountId, sessionId] = [parseId(request.accountId), parseId(request.sessionId)];
  if (!accountId || !sessionId) throw errors.session_not_found();
  const tokenHash = await runTransaction(ctx.db, async (tx) => {
    const deleted = await store.deleteSession(tx, { id: sessionId, account_id: accountId });
    if (!deleted) throw errors.session_not_found();
    await recordAction(ctx, tx, { accountId }, 'account.session_ended', { sessionId });
    return deleted.token_hash;
  });
  await endEpochs(ctx, [tokenHash]);
}

/** Ends every session of an account from the next request on. Returns how many there were. */
export async function endAllSessions(ctx: ActingContext, accountText: string): Promise<number> {
  const accountId = parseId(accountText);
  if (!accountId) return 0;
  const tokenHashes = await runTransaction(ctx.db, async (tx) => {
    const deleted = await store.deleteSessionsOf(tx, accountId);
    const changes = { sessions: deleted.length };
    if (deleted.length > 0) await recordAction(ctx, tx, { accountId }, 'account.signed_out_everywhere', changes);
    return deleted;
  });
  await endEpochs(ctx, tokenHashes);
  return tokenHashes.length;
}

/** Makes every gateway forget deleted sessions. Must follow the commit. */
export async function endEpochs(ctx: IdentityContext, tokenHashes: readonly Buffer[]): Promise<void> {
  if (tokenHashes.length > 0) await ctx.epochs.end(...tokenHashes.map(sessionEpoch));
}

function idleSince(now: Date): Date {
  return new Date(now.getTime() - IDLE_LIFETIME_MS);
}

/** The stored hash of a token; undefined for text that cannot be a token. */
export function hashSessionToken(text: string): Buffer | undefined {
  return TOKEN.test(text) ? hash('sha256', text, 'buffer') : undefined;
}

/** Constant for the lifetime of the session. */
export function csrfTokenOf(csrfKey: KeyObject, sessionId: string): string {
  return hmac(csrfKey, sessionId).toString('base64url');
}
