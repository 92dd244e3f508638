import { formatActor, type Origin } from '@latchkey/audit/actor';
import type { CallIdentity } from '@latchkey/audit/idempotency';
import type { PreparedCall } from '@latchkey/audit/idempotency.store';
import { hasEnded } from '@latchkey/kit/database/process-lock';
import { sql } from 'kysely';
import type { Db } from '../db/schema.ts';
import { afterMs, type Claim } from '../storage/object-deletion/object-deletion.store.ts';
import { OWN_REMOVAL_MS } from '../storage/object-deletion/removal-delay.ts';

/**
 * `waiting` for its image; `stored`, before identity knows of it; `recorded` as the account's;
 * `replaced` by another; `refused` because of what was sent; `abandoned` as no worker made it in
 * time. A row `removing` is the removal of the avatars before it, which identity may not
 * know of; it ends as `replaced`.
 */
type AvatarState = 'waiting' | 'stored' | 'recorded' | 'removing' | 'replaced' | 'refused' | 'abandoned';

/**
 * An uploaded avatar. Its objects are `<account_id>/<raw_id>`, whose deletion is scheduled before
 * it is stored, and `<account_id>/<image_id>`, which exists while it is `stored` or `recorded`.
 */
export interface Avatar {
  readonly id: string;
  readonly account_id: string;
  readonly state: AvatarState;
  readonly raw_id: string;
  readonly image_id: string | null;
  readonly refusal: string | null;
  readonly created_at: Date;
  readonly actor: string | null;
  readonly request_id: string | null;
  /** Call with an idempotency key, and its sealed result, which is kept once the image is stored. */
  readonly idempotency_id: Buffer | null;
  readonly idempotency_fingerprint: Buffer | null;
  readonly idempotency_result: Buffer | null;
}

/** Retention of the row of an ended avatar, which an upload may wait for. */
const ENDED_MS = 10 * 60_000;
/** Avatars that count for the priority of an account. */
const RECENT_MS = 10 * 60_000;
/** Time for the worker to inform identity before the sweeper does. */
const RECORD_MS = 60_000;

/**
 * Adds an avatar that waits for its image, and schedules the deletion of its upload after `dueMs`,
 * when the sweeper ends it too. Returns how many others of the account were begun in the last 10
 * minutes.
 */
export async function insertAvatar(
  db: Db,
  avatar: {
    readonly id: string;
    readonly accountId: string;
    readonly rawId: string;
    readonly origin: Origin;
    readonly call: PreparedCall | undefined;
    readonly processLock: string | null;
  },
  dueMs: number,
): Promise<number> {
  const { id, accountId, rawId, origin, call, processLock } = avatar;
  const { rows } = await sql<{ recent: number }>`
    with scheduled as (
      insert into object_deletion (object_key, due_at) values (${accountId}::text || '/' || ${rawId}::text, ${afterMs(dueMs)}))
    insert into avatar (id, account_id, raw_id, actor, request_id, due_at, process_lock,
      idempotency_id, idempotency_fingerprint, idempotency_result)
    values (${id}, ${accountId}, ${rawId}, ${formatActor(origin) ?? null}, ${origin.requestId ?? null}, ${afterMs(dueMs)}, ${processLock},
      ${call?.id ?? null}, ${call?.fingerprint ?? null}, ${call?.result ?? null})
    returning (select count(*)::int from avatar where account_id = ${accountId} and created_at > ${afterMs(-RECENT_MS)}) as recent`.execute(
    db,
  );
  return rows[0]?.recent ?? 0;
}

/** Ends the upload of a call whose process has ended; false if the call has no such upload. */
export async function endOrphan(db: Db, call: CallIdentity): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update avatar set state = 'abandoned', due_at = ${afterMs(ENDED_MS)}
    where idempotency_id = ${call.id} and state = 'waiting' and ${hasEnded(sql`process_lock`)}`.execute(db);
  return numAffectedRows > 0n;
}

export async function selectAvatar(db: Db, id: string): Promise<Avatar | undefined> {
  return (await sql<Avatar>`select * from avatar where id = ${id}`.execute(db)).rows[0];
}

/** Ends an avatar that waits for its image; false where it no longer does. */
export async function endWaiting(db: Db, id: string, state: 'refused' | 'abandoned', refusal?: string): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update avatar set state = ${state}, refusal = ${refusal ?? null}, due_at = ${afterMs(ENDED_MS)}
    where id = ${id} and state = 'waiting'`.execute(db);
  return numAffectedRows > 0n;
}

/**
 * Schedules the deletion of an object before it is written, so that no failure leaves an orphan.
 * Returns when it is due, which changes once a sweeper claims it.
 */
export async function scheduleDeletion(db: Db, key: string, dueMs: number): Promise<string> {
  const { rows } = await sql<{ due: string }>`
    insert into object_deletion (object_key, due_at) values (${key}, ${afterMs(dueMs)}) returning due_at::text as due`.execute(
    db,
  );
  return (rows[0] as { due: string }).due;
}

/**
 * Gives a waiting avatar its image and cancels the deletion of the object: both or neither. False
 * where the avatar no longer waits. Throws where a sweeper has claimed the deletion, and may be
 * removing the object.
 */
export async function setImage(
  db: Db,
  id: string,
  image: { imageId: string; byteSize: number; checksum: Buffer; key: string; deletionDueAt: string },
): Promise<boolean> {
  const { imageId, byteSize, checksum, key, deletionDueAt } = image;
  const { rows } = await sql<{ scheduled: boolean; set: boolean }>`
    with scheduled as materialized (
      select object_key from object_deletion where object_key = ${key} and due_at = ${deletionDueAt}::timestamptz for update),
    given as (
      update avatar
      set state = 'stored', image_id = ${imageId}, byte_size = ${byteSize}, checksum = ${checksum}, due_at = ${afterMs(RECORD_MS)}
      where id = ${id} and state = 'waiting' and exists (select from scheduled)
      returning id),
    cancelled as (delete from object_deletion where object_key = ${key} and exists (select from given))
    select exists (select from scheduled) as scheduled, exists (select from given) as set`.execute(db);
  if (!rows[0]?.scheduled) throw new Error('The sweeper removes the image already');
  return rows[0].set;
}

export async function lockAvatars(tx: Db, accountId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${accountId}::text, 1))`.execute(tx);
}

/** End of a stored avatar. `replaced`: identity has a later avatar. */
export interface Ending {
  readonly state: 'recorded' | 'replaced' | 'refused';
  readonly refusal?: string;
}

/**
 * Records a stored avatar as the account's instead of earlier ones, or ends it; a removal ends with
 * the avatars before it. A later avatar needs no check: its recording ended this one, or identity
 * already had it. A statement before this one takes the account's lock. Returns the keys of objects
 * whose deletion is scheduled.
 */
export async function endStored(tx: Db, avatar: Avatar, { state, refusal }: Ending): Promise<string[]> {
  const { id, account_id: accountId, created_at: createdAt } = avatar;
  const { rows } = await sql<{ object_key: string }>`
    with recorded as (
      update avatar set state = 'recorded' where id = ${id} and state = 'stored' and ${state} = 'recorded' returning id),
    removed as (
      update avatar set state = 'replaced', due_at = ${afterMs(ENDED_MS)} where id = ${id} and state = 'removing' returning id),
    earlier as (
      update avatar set state = 'replaced', due_at = ${afterMs(ENDED_MS)}
      where account_id = ${accountId} and state in ('stored', 'recorded')
        and (created_at, id) < (${createdAt}::timestamptz, ${id}::uuid)
        and (exists (select from recorded) or exists (select from removed))
      returning image_id),
    ended as (
      update avatar set state = ${state}, refusal = ${refusal ?? null}, due_at = ${afterMs(ENDED_MS)}
      where id = ${id} and state = 'stored' and ${state} <> 'recorded'
      returning image_id)
    insert into object_deletion (object_key, due_at)
    select ${accountId}::text || '/' || image_id, ${afterMs(OWN_REMOVAL_MS)}
    from (select image_id from earlier union all select image_id from ended) as unused
    returning object_key`.execute(tx);
  return rows.map((row) => row.object_key);
}

/** Adds the removal of an account's avatar. The sweeper completes it unless the caller does. */
export async function insertRemoval(
  db: Db,
  { id, accountId, origin }: { readonly id: string; readonly accountId: string; readonly origin: Origin },
): Promise<Avatar> {
  const { rows } = await sql<Avatar>`
    insert into avatar (id, account_id, raw_id, state, actor, request_id, due_at)
    values (${id}, ${accountId}, ${id}, 'removing', ${formatActor(origin) ?? null}, ${origin.requestId ?? null}, ${afterMs(RECORD_MS)})
    returning *`.execute(db);
  return rows[0] as Avatar;
}

export async function endAvatarsOf(db: Db, accountIds: readonly string[]): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    with ended as (
      update avatar set state = 'replaced', due_at = ${afterMs(ENDED_MS)}
      where account_id = any(${accountIds}::uuid[]) and state in ('stored', 'recorded', 'removing')
      returning account_id, image_id)
    insert into object_deletion (object_key) select account_id || '/' || image_id from ended where image_id is not null`.execute(
    db,
  );
  return Number(numAffectedRows);
}

export async function claimDueAvatars(db: Db, { limit, claimMs }: Claim): Promise<Avatar[]> {
  const { rows } = await sql<Avatar>`
    update avatar set due_at = ${afterMs(claimMs)}
    where id = any(array(
      select id from avatar where due_at < now() and state <> 'recorded' order by due_at limit ${limit} for update skip locked))
    returning *`.execute(db);
  return rows;
}

export async function deleteEnded(db: Db, id: string): Promise<void> {
  await sql`delete from avatar where id = ${id} and state in ('replaced', 'refused', 'abandoned')`.execute(db);
}

export async function selectCurrent(db: Db, accountId: string, avatarId: string | undefined): Promise<Avatar | undefined> {
  // Identity names a stored avatar a moment before it is recorded here.
  const condition = avatarId === undefined ? sql`state = 'recorded'` : sql`state in ('stored', 'recorded') and id = ${avatarId}`;
  const { rows } = await sql<Avatar>`
    select * from avatar where account_id = ${accountId} and ${condition}
    order by created_at desc, id desc limit 1`.execute(db);
  return rows[0];
}
