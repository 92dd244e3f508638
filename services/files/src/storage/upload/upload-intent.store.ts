import { hasEnded } from '@latchkey/kit/database/process-lock';
import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../../db/schema.ts';
import type { FileLimits } from '../../limits.ts';
import { afterMs } from '../object-deletion/object-deletion.store.ts';
import { LATE_WRITE_MS } from '../object-deletion/removal-delay.ts';
import { usageLock } from './usage.store.ts';

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

type NewIntent = Omit<ClaimedIntent, 'remainingMs'> & { readonly ticketHash: Buffer };

/** Inserts an intent, which takes the account's lease. False when another upload has it. */
export async function insertIntent(
  db: Db,
  intent: NewIntent,
  times: Pick<FileLimits, 'uploadDeadlineMs' | 'uploadLeaseMs'>,
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    insert into upload_intent (id, account_id, application_id, display_name, byte_size, expected_checksum, byte_size_max, is_replacement,
      ticket_hash, actor, idempotency_id, idempotency_fingerprint, deadline_at, lease_until)
    values (${intent.id}, ${intent.accountId}, ${intent.applicationId}, ${intent.displayName}, ${intent.byteSize},
      ${intent.expectedChecksum}, ${intent.byteSizeMax}, ${intent.isReplacement}, ${intent.ticketHash}, ${intent.actor},
      ${intent.idempotencyId}, ${intent.idempotencyFingerprint}, ${afterMs(times.uploadDeadlineMs)}, ${afterMs(times.uploadLeaseMs)})
    on conflict do nothing`.execute(db);
  return numAffectedRows === 1n;
}

/** Time for the bytes of an upload to follow its ticket before a repetition takes over. */
const ISSUED_MS = 1_000;

/**
 * Abandons uploads: they can't be committed any more, and the removal of their objects is due after
 * some milliseconds. Returns how many.
 */
async function abandon(db: Db, condition: RawBuilder<unknown>, dueMs: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    with abandoned as (delete from upload_intent where ${condition} returning application_id, id)
    insert into object_deletion (object_key, due_at)
    select application_id || '/' || id, ${afterMs(dueMs)} from abandoned on conflict do nothing`.execute(db);
  return Number(numAffectedRows);
}

export const abandonIntent = (db: Db, id: string, dueMs: number) => abandon(db, sql`id = ${id}`, dueMs);

/** Abandons the account's running upload if it is to this application. */
export const abandonUploadTo = (tx: Db, accountId: string, applicationId: string) =>
  abandon(tx, sql`account_id = ${accountId} and application_id = ${applicationId}`, LATE_WRITE_MS);

export const abandonExpired = (db: Db, limit: number) =>
  abandon(
    db,
    sql`id = any(array(
      select id from upload_intent where lease_until < now() order by lease_until limit ${limit} for update skip locked))`,
    0,
  );

/**
 * Abandons the account's upload if its lease has expired. One that is repeated with its idempotency
 * key is abandoned as soon as its process has ended.
 */
export const abandonEnded = (db: Db, accountId: string, callId: Buffer | null) =>
  abandon(
    db,
    sql`account_id = ${accountId} and (lease_until < now() or idempotency_id = ${callId}::bytea
      and case state when 'issued' then created_at < ${afterMs(-ISSUED_MS)} else ${hasEnded(sql`process_lock`)} end)`,
    LATE_WRITE_MS,
  );

/** The account's lease: how long it is valid, and the idempotency key of its upload. */
export async function selectLease(db: Db, accountId: string) {
  const { rows } = await sql<{ seconds: number; idempotencyId: Buffer | null }>`
    select greatest(1, ceil(extract(epoch from lease_until - now())))::int as seconds, idempotency_id as "idempotencyId"
    from upload_intent where account_id = ${accountId}`.execute(db);
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
