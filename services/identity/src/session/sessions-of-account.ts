import { runTransaction } from '@latchkey/audit/transaction';
import { parseId } from '@latchkey/kit/validation/id';
import type { EndSessionRequest, ListSessionsRequest } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import { deleteSession, selectOpenSessions } from './session.store.ts';
import { endEpochs, idleSince } from './session.ts';

const LISTED_MAX = 100;

/** The open sessions of an account, up to 100: the calling one, then those used last. */
export async function listSessions({ db, clock }: IdentityContext, request: ListSessionsRequest) {
  const accountId = parseId(request.accountId);
  if (!accountId) return [];
  const now = clock();
  const open = { accountId, currentId: parseId(request.sessionId), now, idleSince: idleSince(now) };
  return selectOpenSessions(db, open, LISTED_MAX);
}

/** Ends one session of an account from the next request on. Throws `session_not_found`. */
export async function endSessionOf(ctx: ActingContext, request: EndSessionRequest): Promise<void> {
  const [accountId, sessionId] = [parseId(request.accountId), parseId(request.sessionId)];
  if (!accountId || !sessionId) throw errors.session_not_found();
  const tokenHash = await runTransaction(ctx.db, async (tx) => {
    const deleted = await deleteSession(tx, { id: sessionId, account_id: accountId });
    if (!deleted) throw errors.session_not_found();
    await recordAction(ctx, tx, { accountId }, 'account.session_ended', { sessionId });
    return deleted.token_hash;
  });
  await endEpochs(ctx, [tokenHash]);
}
