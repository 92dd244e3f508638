import { type Insertable, type Kysely, sql } from 'kysely';
import type { FileLimits } from '../../context.ts';
import type { FilesDatabase, UploadIntentTable } from '../../db/schema.ts';
import { afterMs, type Claim } from '../object-deletion/object-deletion.store.ts';

type Db = Kysely<FilesDatabase>;

export interface ClaimedIntent {
  readonly id: string;
  readonly accountId: string;
  readonly applicationId: string;
  readonly displayName: string;
  readonly byteSize: number | undefined;
  readonly expectedChecksum: Buffer | undefined;
  readonly byteSizeMax: number;
  /** As the header has it; undefined without an actor. */
  readonly actor: string | undefined;
  /** Time left until the deadline, in milliseconds; negative once it is past. */
  readonly remainingMs: number;
}

type NewIntent = Omit<Insertable<UploadIntentTable>, 'state' | 'created_at' | 'deadline_at' | 'lease_until'>;

/** Inserts an intent, which takes the account's lease. False when another upload has it. */
export async function insertIntent(
  db: Db,
  intent: NewIntent,
  times: Pick<FileLimits, 'uploadDeadlineMs' | 'uploadLeaseMs'>,
): Promise<boolean> {
  const result = await db
    .insertInto('upload_intent')
    .values({ ...intent, deadline_at: afterMs(times.uploadDeadlineMs), lease_until: afterMs(times.uploadLeaseMs) })
    .onConflict((conflict) => conflict.column('account_id').where('state', '<>', 'abandoned').doNothing())
    .executeTakeFirst();
  return result.numInsertedOrUpdatedRows === 1n;
}

/** Abandons the account's upload if its lease has expired. True when there was one. */
export async function abandonExpired(db: Db, accountId: string): Promise<boolean> {
  const result = await db
    .updateTable('upload_intent')
    .set({ state: 'abandoned' })
    .where('account_id', '=', accountId)
    .where('state', '<>', 'abandoned')
    .where('lease_until', '<', sql<Date>`now()`)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Whole seconds until the account's lease expires, at least 1. */
export async function selectLeaseSeconds(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('upload_intent')
    .select(sql<number>`greatest(1, ceil(extract(epoch from lease_until - now())))::int`.as('seconds'))
    .where('account_id', '=', accountId)
    .where('state', '<>', 'abandoned')
    .executeTakeFirst();
  return row?.seconds ?? 1;
}

/** Deletes an intent whose ticket was not used, so that nothing is stored of it. */
export async function deleteUnclaimed(db: Db, ticketHash: Buffer): Promise<void> {
  await db.deleteFrom('upload_intent').where('ticket_hash', '=', ticketHash).where('state', '=', 'issued').execute();
}

/** Claims the intent of a ticket, once and while its lease is valid. */
export async function claimIntent(db: Db, ticketHash: Buffer, leaseMs: number): Promise<ClaimedIntent | undefined> {
  const row = await db
    .updateTable('upload_intent')
    .set({ state: 'receiving', lease_until: afterMs(leaseMs) })
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

/** Renews the lease. False when the upload was abandoned. */
export async function renewLease(db: Db, id: string, leaseMs: number): Promise<boolean> {
  const result = await db
    .updateTable('upload_intent')
    .set({ lease_until: afterMs(leaseMs) })
    .where('id', '=', id)
    .where('state', '=', 'receiving')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Ends an upload to commit it. False when it was abandoned, and must not be committed. */
export async function endIntent(tx: Db, id: string): Promise<boolean> {
  const result = await tx.deleteFrom('upload_intent').where('id', '=', id).where('state', '=', 'receiving').executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Abandons an upload: the lease is free, and the sweeper removes what it stored. */
export async function abandonIntent(db: Db, id: string): Promise<void> {
  await db.updateTable('upload_intent').set({ state: 'abandoned', lease_until: sql<Date>`now()` }).where('id', '=', id).execute();
}

/** Has the sweeper remove the object of an abandoned upload again, after some milliseconds. */
export async function postponeIntent(db: Db, id: string, ms: number): Promise<void> {
  await db
    .updateTable('upload_intent')
    .set({ lease_until: afterMs(ms) })
    .where('id', '=', id)
    .execute();
}

export async function deleteIntent(db: Db, id: string): Promise<void> {
  await db.deleteFrom('upload_intent').where('id', '=', id).execute();
}

/** Claims uploads whose lease has expired; they can't be committed any more. */
export async function claimAbandoned(db: Db, { limit, claimMs }: Claim): Promise<Array<{ id: string; applicationId: string }>> {
  const { rows } = await sql<{ id: string; application_id: string }>`
    update upload_intent set state = 'abandoned', lease_until = ${afterMs(claimMs)}
    where id in (
      select id from upload_intent where lease_until < now() order by lease_until limit ${limit} for update skip locked)
    returning id, application_id`.execute(db);
  return rows.map(({ id, application_id: applicationId }) => ({ id, applicationId }));
}

/** Abandons the upload to an application, of which an account has one at a time. */
export async function abandonUpload(tx: Db, accountId: string, applicationId: string): Promise<void> {
  await tx
    .updateTable('upload_intent')
    .set({ state: 'abandoned' })
    .where('account_id', '=', accountId)
    .where('state', '<>', 'abandoned')
    .where('application_id', '=', applicationId)
    .execute();
}
