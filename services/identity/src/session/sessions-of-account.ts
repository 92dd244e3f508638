import { runTransaction } from '@latchkey/audit/transaction';
import { parseId } from '@latchkey/kit/validation/id';
import { sql } from 'kysely';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import { endEpochs, idleSince } from './session.ts';

const LISTED_MAX = 100;

/** The open sessions of an account, up to 100: the calling one, then those used last. */
export async function listSessions({ db, clock }: IdentityContext, accountText: string, currentText: string) {
  const accountId = parseId(accountText);
  if (!accountId) return [];
  const now = clock();
  return db
    .selectFrom('session')
    .select(['id', 'created_at', 'last_seen_at', 'last_used_ip', 'user_agent'])
    .where('account_id', '=', accountId)
    .where('expires_at', '>', now)
    .where('last_seen_at', '>', idleSince(now))
    .orderBy(sql`id is not distinct from ${parseId(currentText) ?? null}::uuid`, 'desc')
    .orderBy('last_seen_at', 'desc')
    .orderBy('id', 'desc')
    .limit(LISTED_MAX)
    .execute();
}

/** Ends one session of an account from the next request on. Throws `session_not_found`. */
export async function endSessionOf(ctx: ActingContext, accountText: string, sessionText: string): Promise<void> {
  const [accountId, sessionId] = [parseId(accountText), parseId(sessionText)];
  if (!accountId || !sessionId) throw errors.session_not_found();
  const tokenHash = await runTransaction(ctx.db, async (tx) => {
    const named = tx.deleteFrom('session').where('id', '=', sessionId).where('account_id', '=', accountId);
    const deleted = await named.returning('token_hash').executeTakeFirst();
    if (!deleted) throw errors.session_not_found();
    await recordAction(ctx, tx, { accountId }, 'account.session_ended', { sessionId });
    return deleted.token_hash;
  });
  await endEpochs(ctx, [tokenHash]);
}
