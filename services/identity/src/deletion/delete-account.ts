import { setTimeout as delay } from 'node:timers/promises';
import { SERVICE_ORIGIN } from '@latchkey/audit/actor';
import { within } from '@latchkey/kit/concurrency/within';
import { fromConnectError } from '@latchkey/kit/errors/errors';
import { parseId } from '@latchkey/kit/validation/id';
import type { DeleteAccountRequest } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { runAsVerifiedOwner } from '../account/verify-owner.ts';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import * as store from './deleted-account.store.ts';

/** Longest wait of the response for the applications, whose deletion then goes on. */
const APPLICATIONS_WAIT_MS = 1_000;
const APPLICATIONS_MS = 10_000;
/** Applications of a deleted account serve for up to a second after the apps service is back. */
const RETRY_MS = 250;
/** A request that was authenticated before the deletion may create an application until then. */
const LATE_MS = 5 * 60_000;
const SWEEP_BATCH = 100;
const FAILURES_MAX = 10;
const PAGE_SIZE = 500;

type DeletionContext = Pick<IdentityContext, 'db' | 'clock' | 'apps'>;

/**
 * Deletes an account for its verified owner, then its applications. What fails or is slow after the
 * commit changes nothing for the caller: {@link sweepDeletedAccounts} completes it.
 * @param onLeft called when applications are left
 * @throws what {@link runAsVerifiedOwner} throws
 */
export async function deleteAccount(ctx: ActingContext, request: DeleteAccountRequest, onLeft: () => void): Promise<void> {
  const { accountId, epochs } = await runAsVerifiedOwner(ctx, request, async (tx, { id: accountId }) => {
    await recordAction(ctx, tx, { accountId }, 'account.deleted');
    return { accountId, epochs: await store.deleteAccountRow(tx, accountId, ctx.clock()) };
  });
  const applications = ctx.apps.deleteApplications(accountId, ctx.origin, AbortSignal.timeout(APPLICATIONS_MS));
  const logged = applications.catch((err: unknown) => {
    ctx.logger.warn({ err, accountId }, 'applications of a deleted account are left to the sweeper');
    onLeft();
  });
  const waitMs = Math.min(APPLICATIONS_WAIT_MS, (ctx.call?.timeoutMs() ?? 0) / 2);
  await Promise.all([ctx.epochs.end(...epochs), within(waitMs, logged)]);
}

/**
 * Deletes the applications that deleted accounts still have. Repeats each for 5 minutes, for
 * applications that were being created. While the apps service is unavailable it waits for it.
 * Processes may do so concurrently.
 */
export async function sweepDeletedAccounts({ db, clock, apps }: DeletionContext, signal: AbortSignal): Promise<void> {
  const failures: unknown[] = [];
  let batch = await store.selectIncomplete(db, undefined, SWEEP_BATCH);
  for (; batch.length > 0; batch = await store.selectIncomplete(db, batch.at(-1), SWEEP_BATCH)) {
    for (const { account_id: accountId, deleted_at: deletedAt } of batch) {
      if (signal.aborted) return;
      // Read first: an application that is created meanwhile is found by the next sweep.
      const isLate = deletedAt.getTime() <= clock().getTime() - LATE_MS;
      try {
        await retryWhileUnavailable(() => apps.deleteApplications(accountId, SERVICE_ORIGIN, signal), signal);
        if (isLate) await store.completeDeletion(db, accountId, clock());
      } catch (err) {
        failures.push(err);
      }
    }
  }
  if (failures.length > 0) throw new AggregateError(failures.slice(0, FAILURES_MAX), 'Some deleted accounts have applications');
}

async function retryWhileUnavailable(run: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      return await run();
    } catch (err) {
      if (signal.aborted || fromConnectError(err)?.httpStatus !== 503) throw err;
    }
    await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
  }
}

export async function listDeletedAccounts({ db }: IdentityContext, since = new Date(0), afterText = '') {
  return store.selectDeletedSince(db, since, parseId(afterText), PAGE_SIZE);
}
