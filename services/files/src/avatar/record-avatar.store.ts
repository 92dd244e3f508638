import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../db/schema.ts';
import { type Avatar, after } from './avatar.store.ts';

type Db = Kysely<FilesDatabase>;

/** Lets one transaction at a time say which avatar an account has. */
export async function lockAvatars(tx: Db, accountId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${accountId}::text, 1))`.execute(tx);
}

/** Whether the account has an avatar that was uploaded later. */
export async function hasLater(tx: Db, { id, accountId, createdAt }: Avatar): Promise<boolean> {
  const row = await tx
    .selectFrom('avatar')
    .select('id')
    .where('account_id', '=', accountId)
    .where('state', '=', 'recorded')
    .where(sql<boolean>`(created_at, id) > (${createdAt}::timestamptz, ${id}::uuid)`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Makes an avatar that is stored the account's; false where it is not stored any more. */
export async function setRecorded(tx: Db, id: string): Promise<boolean> {
  const result = await tx
    .updateTable('avatar')
    .set({ state: 'recorded' })
    .where('id', '=', id)
    .where('state', '=', 'stored')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Takes the place of the account's avatars that were uploaded earlier; answers their images, which have no row from then on. */
export async function replaceEarlier(tx: Db, { id, accountId, createdAt }: Avatar, keptMs: number): Promise<string[]> {
  const { rows } = await sql<{ image_id: string }>`
    update avatar set state = 'replaced', due_at = ${after(keptMs)}
    where account_id = ${accountId} and state in ('stored', 'recorded')
      and (created_at, id) < (${createdAt}::timestamptz, ${id}::uuid)
    returning image_id`.execute(tx);
  return rows.map((row) => row.image_id);
}

/** Ends an avatar that is stored and will not be the account's; answers its image, or undefined where it is not stored any more. */
export async function endStored(
  tx: Db,
  id: string,
  end: { readonly state: 'replaced' | 'refused'; readonly refusal?: string; readonly keptMs: number },
): Promise<string | undefined> {
  const row = await tx
    .updateTable('avatar')
    .set({ state: end.state, refusal: end.refusal ?? null, due_at: after(end.keptMs) })
    .where('id', '=', id)
    .where('state', '=', 'stored')
    .returning('image_id')
    .executeTakeFirst();
  return row?.image_id ?? undefined;
}
