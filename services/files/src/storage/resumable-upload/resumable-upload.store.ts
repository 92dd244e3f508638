import { UPLOAD_LIFETIME_HOURS } from '@latchkey/contract/resumable-upload';
import { deleteExpired } from '@latchkey/kit/database/delete-expired';
import { hasEnded } from '@latchkey/kit/database/process-lock';
import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../../db/schema.ts';
import { afterMs } from '../object-deletion/object-deletion.store.ts';
import { LATE_WRITE_MS } from '../object-deletion/removal-delay.ts';
import type { Appended } from '../object-store/object-store.ts';

const LIFETIME_MS = UPLOAD_LIFETIME_HOURS * 3_600_000;

/** Length of a claim, which its process renews. */
export const CLAIM_MS = 3_000;

export interface ResumableUpload {
  readonly id: string;
  readonly accountId: string;
  readonly applicationId: string;
  readonly displayName: string;
  readonly byteSize: number;
  readonly byteOffset: number;
  readonly expectedChecksum: Buffer | null;
  readonly metadata: string;
  readonly state: 'open' | 'stored' | 'ended';
  readonly checksum: Buffer | null;
  /** The file that it replaces. */
  readonly fileId: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly isExpired: boolean;
  /** Call of the last chunk that claimed the upload; null without an idempotency key. */
  readonly callId: Buffer | null;
}

export interface ClaimedUpload extends ResumableUpload {
  readonly claimId: string;
  readonly storeState: Appended['state'];
  /** An earlier claim was not released: its process may still be writing. */
  readonly isContested: boolean;
}

const COLUMNS = sql`
  upload.id, account_id as "accountId", application_id as "applicationId", display_name as "displayName",
  byte_size::float8 as "byteSize", byte_offset::float8 as "byteOffset", expected_checksum as "expectedChecksum", metadata,
  state, checksum, file_id as "fileId", created_at as "createdAt", expires_at as "expiresAt", expires_at <= now() as "isExpired",
  claim_call as "callId"`;

const IS_UNFINISHED = sql`state = 'open' and expires_at > now()`;

/** Returns the upload and the id of the transaction. */
export async function insertUpload(
  tx: Db,
  upload: Pick<ResumableUpload, 'id' | 'accountId' | 'applicationId' | 'displayName' | 'byteSize' | 'expectedChecksum'> &
    Pick<ResumableUpload, 'metadata' | 'fileId'> & { readonly chargedMib: number },
): Promise<ResumableUpload & { readonly xid: string }> {
  const { id, accountId, applicationId, displayName, byteSize, chargedMib, expectedChecksum, metadata, fileId } = upload;
  const { rows } = await sql<ResumableUpload & { readonly xid: string }>`
    insert into resumable_upload as upload
      (id, account_id, application_id, display_name, byte_size, charged_mib, expected_checksum, metadata, file_id, expires_at)
    values (${id}, ${accountId}, ${applicationId}, ${displayName}, ${byteSize}, ${chargedMib}, ${expectedChecksum}, ${metadata},
      ${fileId}, ${afterMs(LIFETIME_MS)})
    returning ${COLUMNS}, pg_current_xact_id()::text as xid`.execute(tx);
  return rows[0] as ResumableUpload & { readonly xid: string };
}

/** An upload, finished ones included; undefined for those of a deleted application. */
export async function selectUpload(db: Db, accountId: string, id: string): Promise<ResumableUpload | undefined> {
  const { rows } = await sql<ResumableUpload>`
    select ${COLUMNS} from resumable_upload as upload where id = ${id} and account_id = ${accountId}
      and not exists (select from deleted_application as deleted where deleted.application_id = upload.application_id)`.execute(
    db,
  );
  return rows[0];
}

export async function selectUnfinished(db: Db, accountId: string): Promise<ResumableUpload[]> {
  const { rows } = await sql<ResumableUpload>`
    select ${COLUMNS} from resumable_upload as upload
    where account_id = ${accountId} and ${IS_UNFINISHED} order by created_at, id`.execute(db);
  return rows;
}

/**
 * Claims an upload for a chunk at its offset, if no other claim of a running process is valid. The
 * object of a claim that was not released is removed.
 */
export async function claimUpload(
  db: Db,
  claim: Record<'accountId' | 'id' | 'claimId', string> &
    Pick<ClaimedUpload, 'byteOffset' | 'callId'> & { readonly processLock: string | null },
): Promise<ClaimedUpload | undefined> {
  const { accountId, id, byteOffset, claimId, callId, processLock } = claim;
  const { rows } = await sql<ClaimedUpload>`
    with old as (
      select id as old_id, application_id as owner_id, claim_id as old_claim, store_state->>'tail' as tail from resumable_upload
      where id = ${id} and account_id = ${accountId} and ${IS_UNFINISHED} and byte_offset = ${byteOffset}
        and (claim_id is null or lease_until < now() or ${hasEnded(sql`process_lock`)}) for update
    ), left_over as (
      insert into object_deletion (object_key, due_at) select owner_id || '/' || old_claim, ${afterMs(LATE_WRITE_MS)}
      from old where old_claim is not null and old_claim::text is distinct from tail on conflict do nothing
    )
    update resumable_upload as upload
    set claim_id = ${claimId}, claim_call = ${callId}, process_lock = ${processLock}, lease_until = ${afterMs(CLAIM_MS)}, expires_at = ${afterMs(LIFETIME_MS)}
    from old where id = old_id
    returning ${COLUMNS}, claim_id as "claimId", store_state as "storeState", old_claim is not null as "isContested"`.execute(db);
  return rows[0];
}

type Claim = Pick<ClaimedUpload, 'id' | 'claimId'>;

const isClaimed = ({ id, claimId }: Claim) => sql`id = ${id} and claim_id = ${claimId} and state = 'open'`;

/** False when the claim was lost. */
export async function renewClaim(db: Db, claim: Claim): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update resumable_upload set lease_until = ${afterMs(CLAIM_MS)} where ${isClaimed(claim)}`.execute(db);
  return numAffectedRows > 0n;
}

/**
 * Changes an upload while its claim is valid, and returns it. Schedules the removal of the
 * object of its previous tail, if the change replaced it.
 */
async function changeClaimed(db: Db, claim: Claim, changes: RawBuilder<unknown>): Promise<ResumableUpload | undefined> {
  const { rows } = await sql<ResumableUpload>`
    with old as (
      select id as old_id, store_state->>'tail' as old_tail from resumable_upload where ${isClaimed(claim)} for update
    ), changed as (
      update resumable_upload as upload set ${changes}, expires_at = ${afterMs(LIFETIME_MS)} from old where id = old_id
      returning ${COLUMNS}, old_tail, store_state->>'tail' as tail
    ), replaced as (
      insert into object_deletion (object_key) select "applicationId" || '/' || old_tail
      from changed where old_tail is distinct from tail and old_tail is not null on conflict do nothing
    )
    select * from changed`.execute(db);
  return rows[0];
}

/** Records durable bytes; undefined if the claim was lost. */
export const recordAppended = (db: Db, claim: Claim, { byteSize, state }: Appended) =>
  changeClaimed(
    db,
    claim,
    sql`byte_offset = ${byteSize}, store_state = ${JSON.stringify(state)}, lease_until = ${afterMs(CLAIM_MS)}`,
  );

/** Ends an upload whose file is stored; undefined if the claim was lost. */
export const finishUpload = (tx: Db, claim: Claim, checksum: Buffer) =>
  changeClaimed(tx, claim, sql`state = 'stored', checksum = ${checksum}, claim_id = null, store_state = '{}'`);

/**
 * Releases a claim. Its object is removed, unless it is the recorded tail, where it may have one.
 */
export async function releaseClaim(db: Db, claim: Claim, mayHaveObject: boolean): Promise<void> {
  await sql`
    with released as (
      update resumable_upload set claim_id = null where ${isClaimed(claim)}
      returning application_id || '/' || ${claim.claimId} as object_key, store_state->>'tail' as tail
    )
    insert into object_deletion (object_key, due_at) select object_key, ${afterMs(LATE_WRITE_MS)}
    from released where ${mayHaveObject} and tail is distinct from ${claim.claimId} on conflict do nothing`.execute(db);
}

/** Records that an upload became a new file, with its id: the file to replace is gone. */
export async function clearFileId(tx: Db, id: string): Promise<void> {
  await sql`update resumable_upload set file_id = null where id = ${id}`.execute(tx);
}

/**
 * Ends uploads, and schedules the removal of their objects: later where another process may still
 * write. Returns the keys that can be removed now.
 */
async function endUploads(db: Db, condition: RawBuilder<unknown>, mayBeClaimed = sql`claim_id is not null`): Promise<string[]> {
  const { rows } = await sql<{ key: string; isClaimed: boolean }>`
    with ended as (
      update resumable_upload set state = 'ended', expires_at = ${afterMs(LIFETIME_MS)} where ${condition} and state = 'open'
      returning application_id, id::text, claim_id::text, store_state->>'tail' as tail
    ), keys as (
      select distinct application_id || '/' || object_id as key, ${mayBeClaimed} as claimed
      from ended, unnest(array[id, claim_id, tail]) as object_id where object_id is not null
    ), scheduled as (
      insert into object_deletion (object_key, due_at)
      select key, case when claimed then ${afterMs(LATE_WRITE_MS)} else now() end from keys on conflict do nothing
    )
    select key, claimed as "isClaimed" from keys`.execute(db);
  return rows.filter((row) => !row.isClaimed).map(({ key }) => key);
}

export const endClaimed = (db: Db, claim: Claim) => endUploads(db, isClaimed(claim), sql`false`);

export const endUnfinished = (db: Db, accountId: string, id: string) =>
  endUploads(db, sql`id = ${id} and account_id = ${accountId} and expires_at > now()`);

export const endUploadsTo = (db: Db, applicationId: string) => endUploads(db, sql`application_id = ${applicationId}`);

export const endExpiredOf = (db: Db, accountId: string) => endUploads(db, sql`account_id = ${accountId} and expires_at <= now()`);

export const endExpired = (db: Db, limit: number) =>
  endUploads(
    db,
    sql`id = any(array(
      select id from resumable_upload where state = 'open' and expires_at <= now()
      order by expires_at limit ${limit} for update skip locked))`,
  );

/** Forgets uploads that are stored or ended, a day later. */
export const deleteForgotten = (db: Db, signal: AbortSignal) =>
  deleteExpired(db, { table: 'resumable_upload', since: 'expires_at', where: sql<boolean>`state <> 'open'` }, 'now', signal);
