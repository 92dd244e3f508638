import { formatActor, type Origin, originFrom } from '@latchkey/audit/actor';
import { type Kysely, sql } from 'kysely';
import type { AvatarState, FilesDatabase } from '../db/schema.ts';

type Db = Kysely<FilesDatabase>;

/** An avatar on its way. */
export interface Avatar {
  readonly id: string;
  readonly accountId: string;
  readonly state: AvatarState;
  readonly rawId: string;
  readonly imageId: string | undefined;
  readonly refusal: string | undefined;
  readonly createdAt: Date;
  /** Who sent it. */
  readonly origin: Origin;
}

/** An image that is stored. */
export interface StoredImage {
  readonly imageId: string;
  readonly byteSize: number;
  /** SHA-256, 32 bytes. */
  readonly checksum: Buffer;
}

/** So many milliseconds from now by the database's clock, since processes' clocks may differ. */
export const after = (ms: number) => sql<Date>`now() + make_interval(secs => ${ms / 1000})`;

/** How long an avatar that was begun counts, in milliseconds. Rows of those that are through are kept about as long. */
const RECENT_MS = 10 * 60_000;

const COLUMNS = ['id', 'account_id', 'state', 'raw_id', 'image_id', 'refusal', 'created_at', 'actor', 'request_id'] as const;

interface AvatarRow {
  readonly id: string;
  readonly account_id: string;
  readonly state: AvatarState;
  readonly raw_id: string;
  readonly image_id: string | null;
  readonly refusal: string | null;
  readonly created_at: Date;
  readonly actor: string | null;
  readonly request_id: string | null;
}

const toAvatar = (row: AvatarRow): Avatar => ({
  id: row.id,
  accountId: row.account_id,
  state: row.state,
  rawId: row.raw_id,
  imageId: row.image_id ?? undefined,
  refusal: row.refusal ?? undefined,
  createdAt: row.created_at,
  origin: originFrom(row.actor, row.request_id),
});

/**
 * Adds an avatar that waits for its image, and notes the object of its raw bytes for removal, which is to be later than anybody needs it.
 *
 * @returns how many others of the account were begun in the last 10 minutes
 */
export async function insertAvatar(
  db: Db,
  avatar: Pick<Avatar, 'id' | 'accountId' | 'rawId' | 'origin'>,
  dueMs: number,
): Promise<number> {
  const { id, accountId, rawId, origin } = avatar;
  const { rows } = await sql<{ recent: number }>`
    with noted as (
      insert into object_deletion (object_key, due_at) values (${accountId}::text || '/' || ${rawId}::text, ${after(dueMs)}))
    insert into avatar (id, account_id, raw_id, actor, request_id, due_at)
    values (${id}, ${accountId}, ${rawId}, ${formatActor(origin) ?? null}, ${origin.requestId ?? null}, ${after(dueMs)})
    returning (select count(*)::int from avatar where account_id = ${accountId} and created_at > ${after(-RECENT_MS)}) as recent`.execute(
    db,
  );
  return rows[0]?.recent ?? 0;
}

export async function selectAvatar(db: Db, id: string): Promise<Avatar | undefined> {
  const row = await db.selectFrom('avatar').select(COLUMNS).where('id', '=', id).executeTakeFirst();
  return row && toAvatar(row);
}

/** Those of some avatars that are through with their work, in whatever way. */
export async function selectSettled(db: Db, ids: readonly string[]): Promise<Avatar[]> {
  const rows = await db
    .selectFrom('avatar')
    .select(COLUMNS)
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .where('state', 'not in', ['waiting', 'stored'])
    .execute();
  return rows.map(toAvatar);
}

/** Ends an avatar that waits; false where it does not wait any more. Its row is there for so long, for whoever asks what became of it. */
export async function endWaiting(
  db: Db,
  id: string,
  end: { readonly state: 'refused' | 'abandoned'; readonly refusal?: string; readonly keptMs: number },
): Promise<boolean> {
  const result = await db
    .updateTable('avatar')
    .set({ state: end.state, refusal: end.refusal ?? null, due_at: after(end.keptMs) })
    .where('id', '=', id)
    .where('state', '=', 'waiting')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** The note that an image's object was written under. */
export interface ImageNote {
  readonly key: string;
  /** What tells it from one that a sweeper has taken. */
  readonly note: string;
  /** In how many milliseconds the avatar is a sweeper's to take up. */
  readonly dueMs: number;
}

/**
 * Gives an avatar that waits its image and takes the note back, so that the object stays: both or neither.
 *
 * @returns false where it does not wait any more
 * @throws where a sweeper has taken the note, and may be removing the object
 */
export async function setImage(db: Db, id: string, image: StoredImage, { key, note, dueMs }: ImageNote): Promise<boolean> {
  const { imageId, byteSize, checksum } = image;
  const { rows } = await sql<{ noted: boolean; set: boolean }>`
    with noted as materialized (
      select object_key from object_deletion where object_key = ${key} and due_at = ${note}::timestamptz for update),
    given as (
      update avatar
      set state = 'stored', image_id = ${imageId}, byte_size = ${byteSize}, checksum = ${checksum}, due_at = ${after(dueMs)}
      where id = ${id} and state = 'waiting' and exists (select from noted)
      returning id),
    taken_back as (delete from object_deletion where object_key = ${key} and exists (select from given))
    select exists (select from noted) as noted, exists (select from given) as set`.execute(db);
  if (!rows[0]?.noted) throw new Error('The image was taken for a rest');
  return rows[0].set;
}

/** Takes avatars that are due, which other sweepers then leave alone for so many milliseconds. */
export async function claimDueAvatars(db: Db, { limit, claimMs }: { limit: number; claimMs: number }): Promise<Avatar[]> {
  const rows = await db
    .updateTable('avatar')
    .set({ due_at: after(claimMs) })
    .where('id', 'in', (due) =>
      due
        .selectFrom('avatar')
        .select('id')
        .where('due_at', '<', sql<Date>`now()`)
        .where('state', '<>', 'recorded')
        .orderBy('due_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning(COLUMNS)
    .execute();
  return rows.map(toAvatar);
}

/** Forgets an avatar that nothing came of, or that another took the place of. */
export async function deleteEnded(db: Db, id: string): Promise<void> {
  await db.deleteFrom('avatar').where('id', '=', id).where('state', 'in', ['replaced', 'refused', 'abandoned']).execute();
}

/** An avatar's image as it lies in the store, or undefined where the account has none, or not the one that is named. */
export async function selectImage(
  db: Db,
  accountId: string,
  avatarId: string | undefined,
): Promise<{ readonly id: string; readonly imageId: string } | undefined> {
  const found = db
    .selectFrom('avatar')
    .select(['id', 'image_id'])
    .where('account_id', '=', accountId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(1);
  // Identity may have been told of one a moment before it is recorded here, and its owner have asked.
  const named =
    avatarId === undefined ? found.where('state', '=', 'recorded') : found.where('state', 'in', ['stored', 'recorded']);
  const row = await (avatarId === undefined ? named : named.where('id', '=', avatarId)).executeTakeFirst();
  return row?.image_id ? { id: row.id, imageId: row.image_id } : undefined;
}
