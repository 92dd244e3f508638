import { createCatchUp } from '@latchkey/kit/catch-up';
import { selectListed } from './restriction.store.ts';
import { type DeletedApplication, type RestrictionContext, removeFromRestrictions } from './restriction.ts';

/**
 * A page of the applications that were deleted at a time or later, oldest first.
 *
 * @param pageToken of the page before; empty for the first
 */
export type ListDeletedApplications = (
  since: Date,
  pageToken: string,
  signal: AbortSignal,
) => Promise<{ readonly applications: readonly DeletedApplication[]; readonly nextPageToken: string }>;

/** The first look goes back as far as the event log does: keys may name what was deleted before there was anybody to clear it away. */
const FIRST_LOOK_MS = Number.POSITIVE_INFINITY;
/**
 * How far a look goes back behind the one before: for clocks that differ and deletions that took long to commit, and for keys that were given a list
 * while one of its applications was being deleted. Such a list was checked before the deletion and written after the job that should have cleared it.
 */
const OVERLAP_MS = 5 * 60_000;

/**
 * Looks for deleted applications that keys still name: Redis may lose jobs, PostgreSQL knows.
 *
 * @param listDeleted asks the apps service
 * @returns one look, until it is through or the signal aborts; it rejects when something could not be asked or removed. Unless it came through with
 *   everything, the next goes as far back
 */
export function createDeletionCatchUp(
  ctx: RestrictionContext,
  listDeleted: ListDeletedApplications,
): (signal: AbortSignal) => Promise<void> {
  return createCatchUp({
    clock: ctx.clock,
    firstLookMs: FIRST_LOOK_MS,
    overlapMs: OVERLAP_MS,
    find: (since, signal) => findListed(ctx, listDeleted, since, signal),
    take: (application, signal) => removeFromRestrictions(ctx, application, signal),
  });
}

async function* findListed(
  { db }: RestrictionContext,
  listDeleted: ListDeletedApplications,
  since: Date,
  signal: AbortSignal,
): AsyncGenerator<DeletedApplication> {
  let pageToken = '';
  do {
    const page = await listDeleted(since, pageToken, signal);
    yield* await selectListed(db, page.applications);
    pageToken = page.nextPageToken;
  } while (pageToken !== '' && !signal.aborted);
}
