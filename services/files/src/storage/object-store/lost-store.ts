import { stat } from 'node:fs/promises';
import type { Kysely } from 'kysely';
import type { FilesConfig } from '../../config.ts';
import type { FilesDatabase } from '../../db/schema.ts';
import { hasStored } from '../file/file.store.ts';
import { diskLayout, hasCode } from './disk-layout.ts';

/**
 * Refuses a folder that no store has ever been in while the database has files: it is a mistyped one, or a disk that is not mounted, and would be taken for a
 * new and empty store. Whoever has lost it for good says so by making the folder in it that is missed (docs/operations.md).
 *
 * @throws Error with a sentence; what the database throws where it can't be asked
 */
export async function refuseLostStore(
  db: Kysely<FilesDatabase>,
  { OBJECT_STORE, OBJECTS_DIR = '' }: Pick<FilesConfig, 'OBJECT_STORE' | 'OBJECTS_DIR'>,
): Promise<void> {
  if (OBJECT_STORE !== 'disk') return;
  const { objectsDir } = diskLayout(OBJECTS_DIR);
  // What else is wrong with it is found by whoever uses it.
  const isThere = await stat(objectsDir).then(
    () => true,
    (err: unknown) => !hasCode(err, 'ENOENT'),
  );
  if (isThere || !(await hasStored(db))) return;
  throw new Error(
    `The database has files, and OBJECTS_DIR ${OBJECTS_DIR} has none: set it to the folder where they are, or make ${objectsDir} if they are lost`,
  );
}
