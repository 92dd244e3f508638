import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../db/schema.ts';
import { OWN_REMOVAL_MS } from '../storage/object-deletion.ts';
import { type Avatar, after } from './avatar.store.ts';

type Db = Kysely<FilesDatabase>;

/** Lets one transaction at a time say which avatar an account has. */
export async function lockAvatars(tx: Db, accountId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${accountId}::text, 1))`.execute(tx);
}

/** What becomes of an avatar that is stored. */
export interface AvatarOutcome {
  /** Whether it is the one that identity has. */
  readonly isCurrent: boolean;
  /** How it ends where it is not. */
  readonly otherwise: { readonly state: 'replaced' | 'refused'; readonly refusal?: string };
  /** How long the rows of those that end are kept, in milliseconds. */
  readonly keptMs: number;
}

/**
 * Makes an avatar that is stored the account's, in the place of those that were uploaded earlier, or ends it; nothing where it is not stored any more. It
 * needs no look for one that was uploaded later: if that is recorded, then either this one was stored by then and was ended with it, or identity knew the
 * later one before it was asked of this one. One statement, as every avatar passes through here; it needs the lock of the account, which only a statement
 * before it can take.
 *
 * @returns keys of the objects that have no use any more, which are noted for removal
 */
export async function settleStored(tx: Db, avatar: Avatar, { isCurrent, otherwise, keptMs }: AvatarOutcome): Promise<string[]> {
  const { id, accountId, createdAt } = avatar;
  const { rows } = await sql<{ object_key: string }>`
    with recorded as (
      update avatar set state = 'recorded'
      where id = ${id} and state = 'stored' and ${isCurrent}::boolean
      returning id),
    earlier as (
      update avatar set state = 'replaced', due_at = ${after(keptMs)}
      where account_id = ${accountId} and state in ('stored', 'recorded')
        and (created_at, id) < (${createdAt}::timestamptz, ${id}::uuid) and exists (select from recorded)
      returning image_id),
    ended as (
      update avatar set state = ${otherwise.state}, refusal = ${otherwise.refusal ?? null}, due_at = ${after(keptMs)}
      where id = ${id} and state = 'stored' and not exists (select from recorded)
      returning image_id)
    insert into object_deletion (object_key, due_at)
    select ${accountId}::text || '/' || image_id, ${after(OWN_REMOVAL_MS)}
    from (select image_id from earlier union all select image_id from ended) as unused
    returning object_key`.execute(tx);
  return rows.map((row) => row.object_key);
}
