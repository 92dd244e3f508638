import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { newId } from '@latchkey/kit/validation/id';
import type { StorageContext } from '../context.ts';
import { diskLayout, objectPaths, temporaryPath } from '../storage/object-store/disk-layout.ts';
import { objectKey } from '../storage/object-store/object-store.ts';
import { createCounts, type ReconcileOptions, reconcile } from '../storage/reconciler/reconciler.ts';
import type { OwnedRef } from './fake-apps.ts';
import type { TestFiles } from './test-files.ts';

/** The kind of a finding, and the id or key that its line names first. */
const toShort = (line: string) => `${line.slice(0, 20).trimEnd()} ${/[0-9a-f-]{36}(\/[0-9a-f-]{36})?/.exec(line)?.[0]}`;

const FAILED = 'not repaired: ';

/** Runs the reconciler; findings and failed repairs as `<kind> <id or key>`. */
export async function check(
  { db, store, logger }: StorageContext,
  options: Partial<ReconcileOptions> = {},
  onFinding: () => void = () => undefined,
) {
  const counts = createCounts();
  const lines: string[] = [];
  const all = { repair: false, skipChecksums: false, force: false, ...options };
  const summary = await reconcile({ db, store, logger }, all, counts, (line) => {
    lines.push(line);
    onFinding();
  });
  const texts = lines.filter((line) => !line.startsWith(FAILED));
  const failed = lines.filter((line) => line.startsWith(FAILED)).map((line) => toShort(line.slice(FAILED.length)));
  return { ...summary, counts, texts, found: texts.map(toShort).toSorted(), failed: failed.toSorted() };
}

/** Removes every row and object. */
export async function removeAll({ db, objectsDir }: TestFiles): Promise<void> {
  await db.query(
    'truncate file, file_download_url, file_digest, application_usage, upload_intent, object_deletion, deleted_application, avatar',
  );
  for (const dir of ['objects', 'tmp']) await rm(join(objectsDir, dir), { recursive: true, force: true });
}

/** Stores the avatar of a new account, and returns the path of its image. */
export async function storeAvatar(files: TestFiles): Promise<{ accountId: string; id: string; path: string }> {
  const [accountId, id, imageId] = [newId(), newId(), newId()];
  const path = objectPaths(diskLayout(files.objectsDir), objectKey(accountId, imageId)).file;
  await putAt(path, '');
  await files.db.query(
    `insert into avatar (id, account_id, state, raw_id, image_id, byte_size, checksum, due_at)
     values ($1, $2, 'recorded', $1, $3, 5, sha256('bytes'), now())`,
    [id, accountId, imageId],
  );
  return { accountId, id, path };
}

/** Path of a file's object. */
export function pathOf(files: TestFiles, { applicationId }: OwnedRef, id: string): string {
  return objectPaths(diskLayout(files.objectsDir), objectKey(applicationId, id)).file;
}

export const loseObject = (files: TestFiles, ref: OwnedRef, id: string): Promise<void> => rm(pathOf(files, ref, id));

export const damageObject = (files: TestFiles, ref: OwnedRef, id: string, bytes: string): Promise<void> =>
  writeFile(pathOf(files, ref, id), bytes);

/** Puts an object without a row into the store; returns its key. */
export async function putOrphan(files: TestFiles, key = objectKey(newId(), newId())): Promise<string> {
  return putAt(objectPaths(diskLayout(files.objectsDir), key).file, key);
}

/** Puts there what an interrupted upload leaves. */
export async function putUnfinished(files: TestFiles, key = objectKey(newId(), newId())): Promise<string> {
  return putAt(temporaryPath(diskLayout(files.objectsDir), key), key);
}

async function putAt(path: string, key: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, 'bytes');
  return key;
}
