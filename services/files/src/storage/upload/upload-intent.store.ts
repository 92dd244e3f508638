import { type Insertable, type Kysely, sql } from 'kysely';
import type { FilesDatabase, UploadIntentTable } from '../../db/schema.ts';

/** An upload whose bytes may come now. */
export interface ClaimedIntent {
  readonly id: string;
  readonly accountId: string;
  readonly applicationId: string;
  readonly displayName: string;
  readonly byteSize: number | undefined;
  readonly expectedChecksum: Buffer | undefined;
  readonly byteSizeMax: number;
  /** Who began it, as the header has it; undefined where nobody was named. */
  readonly actor: string | undefined;
  /** Time left until the deadline, in milliseconds; negative once it is past. */
  readonly remainingMs: number;
}

type NewIntent = Omit<Insertable<UploadIntentTable>, 'state' | 'created_at' | 'deadline_at' | 'lease_until'>;

/** So many milliseconds from now by the database's clock, since processes' clocks may differ. */
const after = (ms: number) => sql<Date>`now() + make_interval(secs => ${ms / 1000})`;

/** How long an upload may take, and its lease is good for unless it is renewed. */
export interface IntentTimes {
  readonly uploadDeadlineMs: number;
  readonly uploadLeaseMs: number;
}

/** Adds an intent, which takes the account's lease. False when another upload has it. */
export async function insertIntent(db: Kysely<FilesDatabase>, intent: NewIntent, times: IntentTimes): Promise<boolean> {
  const result = await db
    .insertInto('upload_intent')
    .values({ ...intent, deadline_at: after(times.uploadDeadlineMs), lease_until: after(times.uploadLeaseMs) })
    .onConflict((conflict) => conflict.column('account_id').where('state', '<>', 'abandoned').doNothing())
    .executeTakeFirst();
  return result.numInsertedOrUpdatedRows === 1n;
}

/** Gives up the account's upload if its lease is over. True when there was one. */
export async function abandonExpired(db: Kysely<FilesDatabase>, accountId: string): Promise<boolean> {
  const result = await db
    .updateTable('upload_intent')
    .set({ state: 'abandoned' })
    .where('account_id', '=', accountId)
    .where('state', '<>', 'abandoned')
    .where('lease_until', '<', sql<Date>`now()`)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Whole seconds until the account's lease is over unless it is renewed, at least 1. */
export async function selectLeaseSeconds(db: Kysely<FilesDatabase>, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('upload_intent')
    .select(sql<number>`greatest(1, ceil(extract(epoch from lease_until - now())))::int`.as('seconds'))
    .where('account_id', '=', accountId)
    .where('state', '<>', 'abandoned')
    .executeTakeFirst();
  return row?.seconds ?? 1;
}

/** Forgets an upload whose bytes nobody has begun to send, and of which nothing is stored. */
export async function deleteUnclaimed(db: Kysely<FilesDatabase>, ticketHash: Buffer): Promise<void> {
  await db.deleteFrom('upload_intent').where('ticket_hash', '=', ticketHash).where('state', '=', 'issued').execute();
}

/** Takes the intent that a ticket was issued for, once and while its lease is good. */
export async function claimIntent(
  db: Kysely<FilesDatabase>,
  ticketHash: Buffer,
  leaseMs: number,
): Promise<ClaimedIntent | undefined> {
  const row = await db
    .updateTable('upload_intent')
    .set({ state: 'receiving', lease_until: after(leaseMs) })
    .where('ticket_hash', '=', ticketHash)
    .where('state', '=', 'issued')
    .where('lease_until', '>', sql<Date>`now()`)
    .returning(['id', 'account_id', 'application_id', 'display_name', 'byte_size', 'expected_checksum', 'byte_size_max', 'actor'])
    .returning(sql<number>`(extract(epoch from deadline_at - now()) * 1000)::float8`.as('remaining_ms'))
    .executeTakeFirst();
  return (
    row && {
      id: row.id,
      accountId: row.account_id,
      applicationId: row.application_id,
      displayName: row.display_name,
      byteSize: row.byte_size === null ? undefined : Number(row.byte_size),
      expectedChecksum: row.expected_checksum ?? undefined,
      byteSizeMax: Number(row.byte_size_max),
      actor: row.actor ?? undefined,
      remainingMs: row.remaining_ms,
    }
  );
}

/** Keeps the lease. False when it was lost, or the upload abandoned because its application was deleted. */
export async function renewLease(db: Kysely<FilesDatabase>, id: string, leaseMs: number): Promise<boolean> {
  const result = await db
    .updateTable('upload_intent')
    .set({ lease_until: after(leaseMs) })
    .where('id', '=', id)
    .where('state', '=', 'receiving')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Ends an upload that is being received. False when it was abandoned meanwhile, and so must not be committed. */
export async function endIntent(tx: Kysely<FilesDatabase>, id: string): Promise<boolean> {
  const result = await tx.deleteFrom('upload_intent').where('id', '=', id).where('state', '=', 'receiving').executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Gives up an upload: the lease is free at once, and the sweeper removes what it stored. */
export async function abandonIntent(db: Kysely<FilesDatabase>, id: string): Promise<void> {
  await db.updateTable('upload_intent').set({ state: 'abandoned', lease_until: sql<Date>`now()` }).where('id', '=', id).execute();
}

/** Has the sweeper look at an abandoned upload once more, so many milliseconds from now. */
export async function postponeIntent(db: Kysely<FilesDatabase>, id: string, ms: number): Promise<void> {
  await db
    .updateTable('upload_intent')
    .set({ lease_until: after(ms) })
    .where('id', '=', id)
    .execute();
}

/** Forgets an upload whose rests are removed. */
export async function deleteIntent(db: Kysely<FilesDatabase>, id: string): Promise<void> {
  await db.deleteFrom('upload_intent').where('id', '=', id).execute();
}
