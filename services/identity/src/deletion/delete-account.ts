import { SERVICE_ORIGIN } from '@latchkey/audit/actor';
import { parseId } from '@latchkey/kit/validation/id';
import type { DeleteAccountRequest } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { getAccount } from '../account/account.ts';
import { requireFreshSession, runAsOwner } from '../account/verify-owner.ts';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import type { DeleteApplications } from './delete-applications.client.ts';
import * as store from './deleted-account.store.ts';

/** Within the time that the gateway waits, with the time that a password takes. */
const APPLICATIONS_MS = 2_500;
/** A request that was authenticated before the deletion may create an application until then. */
const LATE_MS = 5 * 60_000;
const RETENTION_MS = 30 * 86_400_000;
const SWEEP_BATCH = 100;
const FAILURES_MAX = 10;
const PAGE_SIZE = 500;

type DeletionContext = Pick<IdentityContext, 'db' | 'clock'>;

/**
 * Deletes an account for its verified owner, then its applications. What fails after the commit is
 * left to {@link sweepDeletedAccounts}.
 * @throws `account_not_found`, `session_invalid`, `oidc_session_too_old`,
 * `two_factor_password_wrong`, and what {@link runAsOwner} throws
 */
export async function deleteAccount(
  ctx: ActingContext,
  request: DeleteAccountRequest,
  deleteApplications: DeleteApplications,
): Promise<void> {
  const account = await getAccount(ctx, request.accountId);
  await requireFreshSession(ctx, account, request.sessionId);
  const { id: accountId } = account;
  const epochs = await runAsOwner(ctx, account, request, errors.two_factor_password_wrong, async (tx) => {
    await recordAction(ctx, tx, { accountId }, 'account.deleted');
    return store.deleteAccountRow(tx, accountId, ctx.clock());
  });
  const applications = deleteApplications(accountId, ctx.origin, AbortSignal.timeout(APPLICATIONS_MS));
  const logged = applications.catch((err: unknown) => {
    ctx.logger.warn({ err, accountId }, 'applications of a deleted account are left to the sweeper');
  });
  await Promise.all([ctx.epochs.end(...epochs), logged]);
}

/**
 * Deletes the applications that deleted accounts still have, and forgets deletions after 30 days.
 * Repeats each for 5 minutes, for applications that were being created. Processes may do so
 * concurrently.
 */
export async function sweepDeletedAccounts(
  { db, clock }: DeletionContext,
  deleteApplications: DeleteApplications,
  signal: AbortSignal,
): Promise<void> {
  const failures: unknown[] = [];
  for (const { account_id: accountId, deleted_at: deletedAt } of await store.selectIncomplete(db, SWEEP_BATCH)) {
    if (signal.aborted) return;
    // Read first: an application that is created meanwhile is found by the next sweep.
    const isLate = deletedAt.getTime() <= clock().getTime() - LATE_MS;
    try {
      await deleteApplications(accountId, SERVICE_ORIGIN, signal);
      if (isLate) await store.completeDeletion(db, accountId, clock());
    } catch (err) {
      failures.push(err);
    }
  }
  await store.deleteCompleted(db, new Date(clock().getTime() - RETENTION_MS));
  if (failures.length > 0) throw new AggregateError(failures.slice(0, FAILURES_MAX), 'Some deleted accounts have applications');
}

/** A page of deletions from a time on, after an account at exactly that time. */
export async function listDeletedAccounts({ db }: DeletionContext, since = new Date(0), afterText = '') {
  return store.selectDeletedSince(db, since, parseId(afterText), PAGE_SIZE);
}
