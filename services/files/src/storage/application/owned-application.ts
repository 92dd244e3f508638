import { setTimeout as delay } from 'node:timers/promises';
import { isUnreachable } from '@latchkey/kit/errors/errors';
import { errors } from '../../proto-errors.ts';

/** Those of some applications that the account owns and has not deleted. */
export type FindOwnedApplications = (
  accountId: string,
  applicationIds: readonly string[],
  requestId: string,
) => Promise<ReadonlySet<string>>;

/** An application that a caller names as an account's, with canonical ids. */
export interface ApplicationRef {
  readonly accountId: string;
  readonly applicationId: string;
  readonly requestId: string;
}

const RETRY_MS = 250;

/**
 * Repeats a call while the apps service is unreachable, as during its restart, until the signal
 * aborts. Every response is final, errors included.
 */
export async function waitUntilReachable<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (err) {
      if (!isUnreachable(err) || signal.aborted) throw err;
    }
    await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
  }
}

export async function requireOwned(findOwned: FindOwnedApplications, ref: ApplicationRef): Promise<void> {
  const owned = await findOwned(ref.accountId, [ref.applicationId], ref.requestId);
  if (!owned.has(ref.applicationId)) throw errors.application_not_found();
}

/**
 * Reads something of an application while the apps service checks its owner. Throws
 * `application_not_found` before any error of the reading.
 */
export async function readOwned<T>(findOwned: FindOwnedApplications, ref: ApplicationRef, read: () => Promise<T>): Promise<T> {
  const [owned, outcome] = await Promise.allSettled([requireOwned(findOwned, ref), read()]);
  if (owned.status === 'rejected') throw owned.reason;
  if (outcome.status === 'rejected') throw outcome.reason;
  return outcome.value;
}
