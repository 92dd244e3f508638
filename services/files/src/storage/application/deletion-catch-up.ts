import { createCatchUp } from '@latchkey/kit/catch-up';
import { selectHalfForgotten, selectUnmarked } from './deleted-application.store.ts';
import { type DeletedApplication, type ForgetContext, forgetApplication } from './deleted-application.ts';

/**
 * A page of the applications that were deleted at a time or later, oldest first.
 *
 * @param pageToken of the page before; empty for the first
 */
export type ListDeletedApplications = (
  since: Date,
  pageToken: string,
) => Promise<{ readonly applications: readonly DeletedApplication[]; readonly nextPageToken: string }>;

/** How far the first look goes back, which is what the event log is kept for. */
const FIRST_LOOK_MS = 24 * 3_600_000;
/** How far a look goes back behind the one before, for clocks that differ and deletions that took long to commit. */
const OVERLAP_MS = 5 * 60_000;
/** Most that are taken up at once of those that somebody else may be at. */
const HALF_FORGOTTEN_MAX = 100;

/**
 * Looks for deleted applications that no job told of: Redis may lose jobs, PostgreSQL knows.
 *
 * @param listDeleted asks the apps service
 * @param onObjectsToRemove called after each commit that leaves objects to remove
 * @returns one look, until it is through or the signal aborts; it rejects when something could not be asked or forgotten. Unless it came through
 *   with everything, the next goes as far back
 */
export function createDeletionCatchUp(
  ctx: ForgetContext,
  listDeleted: ListDeletedApplications,
  onObjectsToRemove: () => void,
): (signal: AbortSignal) => Promise<void> {
  return createCatchUp({
    clock: ctx.clock,
    firstLookMs: FIRST_LOOK_MS,
    overlapMs: OVERLAP_MS,
    find: (since) => findUnforgotten(ctx, listDeleted, since),
    take: (application) => forgetApplication(ctx, application, onObjectsToRemove),
  });
}

/** Deleted applications that are not wholly forgotten: those that somebody has begun with, and those that apps knows of since a time. */
async function* findUnforgotten(
  ctx: ForgetContext,
  listDeleted: ListDeletedApplications,
  since: Date,
): AsyncGenerator<DeletedApplication> {
  yield* await selectHalfForgotten(ctx.db, HALF_FORGOTTEN_MAX);
  let pageToken = '';
  do {
    const page = await listDeleted(since, pageToken);
    const ids = page.applications.map(({ applicationId }) => applicationId);
    const unmarked = await selectUnmarked(ctx.db, ids);
    yield* page.applications.filter(({ applicationId }) => unmarked.has(applicationId));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
}
