import { hash, type KeyObject, randomBytes } from 'node:crypto';
import type { Changes } from '@latchkey/audit/record';
import { afterCommit, runTransaction } from '@latchkey/audit/transaction';
import { withoutInvisible } from '@latchkey/contract/invisible';
import { SESSIONS_LISTED_MAX } from '@latchkey/contract/page-size';
import { hmac } from '@latchkey/kit/crypto/secrets';
import { newId, parseId, toId } from '@latchkey/kit/validation/id';
import type {
  EndSessionRequest,
  ListSessionsRequest,
  SignInRequest,
  SignOutRequest,
} from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { asSession, recordAction } from '../audit/actions.ts';
import { sessionEpoch } from '../authentication/principal-epoch.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import * as store from './session.store.ts';

const DAY_MS = 86_400_000;
/** Since the last use. `authentication.ts` records a use at most once a minute from one address. */
export const IDLE_LIFETIME_MS = 7 * DAY_MS;
const ABSOLUTE_LIFETIME_MS = 30 * DAY_MS;
/** 256 random bits. */
const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export type OpenedSession = Awaited<ReturnType<typeof openSession>>;

export type SessionClient = Pick<SignInRequest, 'previousSessionToken' | 'userAgent'>;

/**
 * Opens a session, and ends the one that the client had before: in one transaction, as a failure
 * after the commit would reject a sign-in that is done.
 */
export async function openSession(ctx: ActingContext, tx: Db, accountId: string, from: SessionClient) {
  const id = newId();
  const now = ctx.clock();
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const expiresAt = new Date(now.getTime() + ABSOLUTE_LIFETIME_MS);
  const times = { created_at: now, last_seen_at: now, expires_at: expiresAt };
  const client = { last_used_ip: ctx.origin.address ?? null, user_agent: toStoredUserAgent(from.userAgent) };
  const previous = hashSessionToken(from.previousSessionToken);
  if (previous) await end(ctx, tx, { token_hash: previous }, 'account.signed_out', { because: 'signed_in' });
  await store.insertSession(tx, { id, account_id: accountId, token_hash: hash('sha256', token, 'buffer'), ...times, ...client });
  return { id, token, csrfToken: csrfTokenOf(ctx.csrfKey, id), expiresAt };
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
export async function endSession(ctx: ActingContext, request: SignOutRequest): Promise<void> {
  await runTransaction(ctx.db, (tx) => end(ctx, tx, toRef(request), 'account.signed_out'));
}

const toRef = (request: Pick<EndSessionRequest, 'accountId' | 'sessionId'>) => ({
  account_id: toId(request.accountId),
  id: toId(request.sessionId),
});

type EndAction = 'account.signed_out' | 'account.session_ended';

/** @returns true if there was such a session */
async function end(ctx: ActingContext, tx: Db, session: store.SessionRef, action: EndAction, changes?: Changes) {
  const deleted = await store.deleteSession(tx, session);
  if (!deleted) return false;
  const actor = changes?.because ? asSession(ctx, deleted.id) : ctx;
  await recordAction(actor, tx, { accountId: deleted.account_id }, action, changes);
  endEpochs(ctx, tx, [deleted.token_hash]);
  return true;
}

/** The open sessions of an account, up to 100: the calling one, then those used last. */
export async function listSessions({ db, clock }: IdentityContext, request: ListSessionsRequest) {
  const now = clock();
  const open = { accountId: toId(request.accountId), currentId: parseId(request.sessionId), now, idleSince: idleSince(now) };
  return store.selectOpenSessions(db, open, SESSIONS_LISTED_MAX);
}

/** Ends one session of an account from the next request on. Throws `session_not_found`. */
export async function endSessionOf(ctx: ActingContext, request: EndSessionRequest): Promise<void> {
  const ref = toRef(request);
  const isEnded = await runTransaction(ctx.db, (tx) => end(ctx, tx, ref, 'account.session_ended', { sessionId: ref.id }));
  if (!isEnded) throw errors.session_not_found();
}

/** Ends every session of an account from the next request on. Returns how many there were. */
export async function endAllSessions(ctx: ActingContext, accountText: string): Promise<number> {
  const accountId = toId(accountText);
  return runTransaction(ctx.db, async (tx) => {
    const sessions = await endSessionsOf(ctx, tx, accountId);
    if (sessions > 0) await recordAction(ctx, tx, { accountId }, 'account.signed_out_everywhere', { sessions });
    return sessions;
  });
}

/**
 * Ends the sessions of an account, except one, and cancels its sign-ins under way.
 * @returns how many ended
 */
export async function endSessionsOf(ctx: IdentityContext, tx: Db, accountId: string, keptText = ''): Promise<number> {
  const tokenHashes = await store.deleteSessionsOf(tx, accountId, parseId(keptText));
  endEpochs(ctx, tx, tokenHashes);
  return tokenHashes.length;
}

/** Makes every gateway forget deleted sessions, after the commit. */
function endEpochs({ epochs }: IdentityContext, tx: Db, tokenHashes: readonly Buffer[]): void {
  if (tokenHashes.length > 0) afterCommit(tx, () => epochs.end(...tokenHashes.map(sessionEpoch)));
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
