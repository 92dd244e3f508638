import { type Kysely, sql } from 'kysely';
import type { PageStart } from '../application/application.store.ts';
import type { AppsDatabase } from '../db/schema.ts';

/** Deletions that the event log has, of all accounts, in their order, up to `limit`. */
export async function selectDeletions(
  db: Kysely<AppsDatabase>,
  page: { readonly since: Date | undefined; readonly after: PageStart | undefined; readonly limit: number },
) {
  const { since, after, limit } = page;
  let query = db
    .selectFrom('application_event')
    .select(['application_id', 'account_id', 'created_at'])
    // Written out, or a plan for any type could not use the index of this one.
    .where('type', '=', sql.lit('deleted'))
    .orderBy('created_at')
    .orderBy('application_id')
    .limit(limit);
  if (since) query = query.where('created_at', '>=', since);
  if (after)
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('created_at', 'application_id'), '>', tuple(after.createdAt, after.id)),
    );
  return query.execute();
}
