import { hasEnded } from '@latchkey/kit/database/process-lock';
import { type Insertable, type Kysely, sql } from 'kysely';
import type { FileLimits } from '../../context.ts';
import type { FilesDatabase, UploadIntentTable } from '../../db/schema.ts';
import { afterMs, type Claim } from '../object-deletion/object-deletion.store.ts';
import { usageLock } from './usage.store.ts';

type Db = Kysely<FilesDatabase>;

export interface ClaimedIntent {
  readonly id: string;
  readonly accountId: string;
  readonly applicationId: string;
  readonly displayName: string;
  readonly byteSize: number | null;
  readonly expectedChecksum: Buffer | null;
  readonly byteSizeMax: number;
  readonly isReplacement: boolean;
  readonly actor: string | null;
  readonly idempotencyId: Buffer | null;
  readonly idempotencyFingerprint: Buffer | null;
  /** Time left until the deadline, in milliseconds; negative once it is past. */
  readonly remainingMs: number;
}

type NewIntent = Omit<Insertable<UploadIntentTable>, 'state' | 'created_at' | 'deadline_at' | 'lease_until' | 'process_lock'>;

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

/** Time for the bytes of an upload to follow its ticket before a repetition takes over. */
const ISSUED_MS = 1_000;

/**
 * Abandons the account's upload if its lease has expired. One that is repeated with its idempotency
 * key is abandoned as soon as its process has ended. True when there was one.
 */
export async function abandonEnded(db: Db, accountId: string, callId: Buffer | null): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update upload_intent set state = 'abandoned'
    where account_id = ${accountId} and state <> 'abandoned' and (lease_until < now() or idempotency_id = ${callId}::bytea
      and case state when 'issued' then created_at < ${afterMs(-ISSUED_MS)} else ${hasEnded(sql`process_lock`)} end)`.execute(db);
  return numAffectedRows > 0n;
}

/** The account's lease: how long it is valid, and the idempotency key of its upload. */
export async function selectLease(db: Db, accountId: string) {
  const { rows } = await sql<{ seconds: number; idempotencyId: Buffer | null }>`
    select greatest(1, ceil(extract(epoch from lease_until - now())))::int as seconds, idempotency_id as "idempotencyId"
    from upload_intent where account_id = ${accountId} and state <> 'abandoned'`.execute(db);
  return rows[0];
}

/** Deletes an intent whose ticket was not used, so that nothing is stored of it. */
export async function deleteUnclaimed(db: Db, ticketHash: Buffer): Promise<void> {
  await sql`delete from upload_intent where ticket_hash = ${ticketHash} and state = 'issued'`.execute(db);
}

/** Claims the intent of a ticket, once and while its lease is valid. */
export async function claimIntent(
  db: Db,
  ticketHash: Buffer,
  leaseMs: number,
  processLock: string | null,
): Promise<ClaimedIntent | undefined> {
  const { rows } = await sql<ClaimedIntent>`
    update upload_intent set state = 'receiving', lease_until = ${afterMs(leaseMs)}, process_lock = ${processLock}
    where ticket_hash = ${ticketHash} and state = 'issued' and lease_until > now()
    returning id, account_id as "accountId", application_id as "applicationId", display_name as "displayName",
      byte_size::float8 as "byteSize", expected_checksum as "expectedChecksum", byte_size_max::float8 as "byteSizeMax",
      is_replacement as "isReplacement", actor, idempotency_id as "idempotencyId", idempotency_fingerprint as "idempotencyFingerprint",
      (extract(epoch from deadline_at - now()) * 1000)::float8 as "remainingMs"`.execute(db);
  return rows[0];
}

/** Renews the lease. False when the upload was abandoned. */
export async function renewLease(db: Db, id: string, leaseMs: number): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update upload_intent set lease_until = ${afterMs(leaseMs)} where id = ${id} and state = 'receiving'`.execute(db);
  return numAffectedRows > 0n;
}

/**
 * Ends an upload to commit it, and locks the account's usage. False when it was abandoned, and must
 * not be committed.
 */
export async function endIntent(tx: Db, id: string): Promise<boolean> {
  const { rows } = await sql`
    delete from upload_intent where id = ${id} and state = 'receiving' returning ${usageLock(sql`account_id`)}`.execute(tx);
  return rows.length > 0;
}

/** Abandons an upload: the lease is free, and the sweeper removes what it stored. */
export async function abandonIntent(db: Db, id: string): Promise<void> {
  await sql`update upload_intent set state = 'abandoned', lease_until = now() where id = ${id}`.execute(db);
}

/** Has the sweeper remove the object of an abandoned upload again, after some milliseconds. */
export async function postponeIntent(db: Db, id: string, ms: number): Promise<void> {
  await sql`update upload_intent set lease_until = ${afterMs(ms)} where id = ${id}`.execute(db);
}

export async function deleteIntent(db: Db, id: string): Promise<void> {
  await deleteIntents(db, [id]);
}

export async function deleteIntents(db: Db, ids: readonly string[]): Promise<void> {
  await sql`delete from upload_intent where id = any(${ids}::uuid[])`.execute(db);
}

/** Claims uploads whose lease has expired; they can't be committed any more. */
export async function claimAbandoned(db: Db, { limit, claimMs }: Claim): Promise<Array<{ id: string; applicationId: string }>> {
  const { rows } = await sql<{ id: string; applicationId: string }>`
    update upload_intent set state = 'abandoned', lease_until = ${afterMs(claimMs)}
    where id = any(array(
      select id from upload_intent where lease_until < now() order by lease_until limit ${limit} for update skip locked))
    returning id, application_id as "applicationId"`.execute(db);
  return rows;
}

/**
 * Abandons the account's running upload if it is to this application. An account has at most one.
 */
export async function abandonUpload(tx: Db, accountId: string, applicationId: string): Promise<void> {
  await sql`
    update upload_intent set state = 'abandoned'
    where account_id = ${accountId} and application_id = ${applicationId} and state <> 'abandoned'`.execute(tx);
}
