import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../../db/schema.ts';

/** An upload that was abandoned and may have left something. */
export interface AbandonedUpload {
  readonly id: string;
  readonly applicationId: string;
}

/** How much a sweeper takes, and how long it has for that before another takes it, in milliseconds. */
export interface Claim {
  readonly limit: number;
  readonly claimMs: number;
}

const claimEnd = (claimMs: number) => sql<Date>`now() + make_interval(secs => ${claimMs / 1000})`;

/** Takes uploads whose lease is over; they can't be committed from then on. Sweepers at once take different ones. */
export async function claimAbandoned(db: Kysely<FilesDatabase>, { limit, claimMs }: Claim): Promise<AbandonedUpload[]> {
  const rows = await db
    .updateTable('upload_intent')
    .set({ state: 'abandoned', lease_until: claimEnd(claimMs) })
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
export async function claimObjectDeletions(db: Kysely<FilesDatabase>, { limit, claimMs }: Claim): Promise<string[]> {
  const rows = await db
    .updateTable('object_deletion')
    .set({ due_at: claimEnd(claimMs) })
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
