import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../db/schema.ts';

/** An upload that was abandoned and may have left something. */
export interface AbandonedUpload {
  readonly id: string;
  readonly applicationId: string;
}

/** How long one sweeper has for what it took before another takes it, in seconds. */
const CLAIM_S = 60;

const claimEnd = sql<Date>`now() + make_interval(secs => ${sql.lit(CLAIM_S)})`;

/** Takes uploads whose lease is over; they can't be committed from then on. Sweepers at once take different ones. */
export async function claimAbandoned(db: Kysely<FilesDatabase>, limit: number): Promise<AbandonedUpload[]> {
  const rows = await db
    .updateTable('upload_intent')
    .set({ state: 'abandoned', lease_until: claimEnd })
    .where('id', 'in', (intents) =>
      intents
        .selectFrom('upload_intent')
        .select('id')
        .where('lease_until', '<', sql<Date>`now()`)
        .orderBy('lease_until')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning(['id', 'application_id'])
    .execute();
  return rows.map((row) => ({ id: row.id, applicationId: row.application_id }));
}

/** Takes objects that are due for removal. */
export async function claimObjectDeletions(db: Kysely<FilesDatabase>, limit: number): Promise<string[]> {
  const rows = await db
    .updateTable('object_deletion')
    .set({ due_at: claimEnd })
    .where('object_key', 'in', (deletions) =>
      deletions
        .selectFrom('object_deletion')
        .select('object_key')
        .where('due_at', '<=', sql<Date>`now()`)
        .orderBy('due_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning('object_key')
    .execute();
  return rows.map((row) => row.object_key);
}

/** Forgets objects that are removed. */
export async function deleteObjectDeletions(db: Kysely<FilesDatabase>, keys: readonly string[]): Promise<void> {
  await db.deleteFrom('object_deletion').where('object_key', 'in', keys).execute();
}
