import { setTimeout as delay } from 'node:timers/promises';
import { isUnreachable } from '@latchkey/kit/errors';
import { parseId } from '@latchkey/kit/id';
import { errors } from '../../errors.ts';

/**
 * Which of some applications are the account's and not deleted.
 *
 * @param requestId id of the request that the question belongs to; empty for none
 */
export type FindOwnedApplications = (
  accountId: string,
  applicationIds: readonly string[],
  requestId: string,
) => Promise<ReadonlySet<string>>;

/** Pause until the apps service is asked again, in milliseconds. */
const RETRY_MS = 250;

/**
 * Repeats a question while no process of the apps service can be reached, as during its restart, until the signal aborts. What
 * the service answers is final, errors included: a database that is away must fail soon.
 */
export function findOwnedOnceReachable(findOwned: FindOwnedApplications, signal: AbortSignal): FindOwnedApplications {
  return async (...question) => {
    for (;;) {
      try {
        return await findOwned(...question);
      } catch (err) {
        if (!isUnreachable(err) || signal.aborted) throw err;
      }
      await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  };
}

/** Names an application of an account, as a caller sent it, and the request that is about it. */
export interface ApplicationRef {
  readonly accountId: string;
  readonly applicationId: string;
  readonly requestId: string;
}

/** The ids of a reference in canonical form. Throws `application_not_found` for text that names nothing. */
export function parseRef(ref: ApplicationRef): ApplicationRef {
  const accountId = parseId(ref.accountId);
  const applicationId = parseId(ref.applicationId);
  if (!accountId || !applicationId) throw errors.application_not_found();
  return { accountId, applicationId, requestId: ref.requestId };
}

/**
 * Reads something of an application while the apps service is asked whether it is the account's, so that both take the time of one.
 *
 * @param ref ids in canonical form
 * @throws `application_not_found`, before whatever the reading failed with
 */
export async function whileOwned<T>(findOwned: FindOwnedApplications, ref: ApplicationRef, read: () => Promise<T>): Promise<T> {
  const { accountId, applicationId, requestId } = ref;
  const [owned, outcome] = await Promise.allSettled([findOwned(accountId, [applicationId], requestId), read()]);
  if (owned.status === 'rejected') throw owned.reason;
  if (!owned.value.has(applicationId)) throw errors.application_not_found();
  if (outcome.status === 'rejected') throw outcome.reason;
  return outcome.value;
}
