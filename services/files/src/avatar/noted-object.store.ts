import { type Kysely, sql } from 'kysely';
import type { FilesDatabase } from '../db/schema.ts';
import { after } from './avatar.store.ts';

type Db = Kysely<FilesDatabase>;

/**
 * Notes an object for removal before it is written, so that nothing is left of it whatever happens.
 *
 * @returns what tells this note from one that a sweeper has taken
 */
export async function noteObject(db: Db, key: string, dueMs: number): Promise<string> {
  const { due } = await db
    .insertInto('object_deletion')
    .values({ object_key: key, due_at: after(dueMs) })
    .returning(sql<string>`due_at::text`.as('due'))
    .executeTakeFirstOrThrow();
  return due;
}
