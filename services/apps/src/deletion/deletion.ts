import { parsePage } from '../application/page.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import { selectDeletions } from './deletion.store.ts';

/** An application that is gone. */
export interface Deletion {
  readonly applicationId: string;
  readonly accountId: string;
  readonly deletedAt: Date;
}

/** Which deletions to list. */
export interface DeletionsRequest {
  /** Only those at this time or later; undefined for as far back as the event log goes. */
  readonly since: Date | undefined;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** What PostgreSQL has a time for, and a page token a place, in milliseconds. */
const TIME_MS_MAX = 99_999_999_999_999;

/**
 * A page of deletions of all accounts, oldest first; an empty token says that it is the last.
 *
 * @throws `page_token_invalid`
 */
export async function listDeletions(
  ctx: AppsContext,
  request: DeletionsRequest,
): Promise<{ deletions: Deletion[]; nextPageToken: string }> {
  const page = parsePage(request.pageSize, request.pageToken);
  if (request.since && !(Math.abs(request.since.getTime()) <= TIME_MS_MAX)) throw errors.page_token_invalid();
  const rows = await selectDeletions(ctx.db, { since: request.since, after: page.after, limit: page.size + 1 });
  const shown = rows.slice(0, page.size);
  const deletions = shown.map((row) => ({
    applicationId: row.application_id,
    accountId: row.account_id,
    deletedAt: row.created_at,
  }));
  const last = deletions.at(-1);
  const more = rows.length > shown.length && last !== undefined;
  return { deletions, nextPageToken: more ? page.tokenAfter({ createdAt: last.deletedAt, id: last.applicationId }) : '' };
}
