import { open, opendir, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { createFolders, type DiskLayout, diskLayout, keyOfTemporary, listFolder, objectPaths } from './disk-layout.ts';
import { appendToFile, publishFile, removeTemporary, writeObject } from './disk-write.ts';
import { createReadQueue, FileBody } from './file-body.ts';
import { ignore, ignoreMissing, syncFolder } from './make-folder.ts';
import { isId, type ObjectStore, objectKey, type StoredObject } from './object-store.ts';

/**
 * Stores objects as files below a folder. Several processes of one machine, or of several on a
 * shared file system, may use it concurrently.
 */
export function createDiskStore(dir: string): ObjectStore {
  const layout = diskLayout(dir);
  const reads = createReadQueue();
  const pathOf = (key: string) => objectPaths(layout, key).file;
  return {
    put: (key, body, signal, options) => writeObject(layout, key, body, signal, options),
    append: (key, from, body, signal, options) => appendToFile(layout, key, from, body, signal, options),
    publish: (key, whole) => publishFile(layout, key, whole),
    read: async (key, range) => {
      const handle = await open(pathOf(key), 'r').catch(ignoreMissing);
      return handle && new FileBody(handle, reads, range);
    },
    localPath: pathOf,
    stat: async (key) => {
      const found = await stat(pathOf(key)).catch(ignoreMissing);
      return found && { byteSize: found.size };
    },
    remove: async (...keys) => removeObjects(layout, keys),
    list: () => listObjects(layout),
    createDownloadUrl: async () => undefined,
    check: () => probe(layout),
    close: async () => undefined,
  };
}

/**
 * Unfinished files go first: a write that has not published its file yet finds it gone and fails,
 * and one that has is removed with the object.
 */
async function removeObjects(layout: DiskLayout, keys: readonly string[]): Promise<void> {
  const paths = keys.map((key) => objectPaths(layout, key));
  await removeTemporary(layout, keys);
  for (const { file } of paths) await unlink(file).catch(ignoreMissing);
  for (const dir of new Set(paths.map((path) => path.dir))) {
    // Synced even where there was nothing: an earlier removal may have ended before its own sync.
    const changed = await rmdir(dir).then(() => layout.objectsDir, ignore('ENOENT', 'ENOTEMPTY', 'EEXIST'));
    await syncFolder(changed ?? dir).catch(ignoreMissing);
  }
}

async function* listObjects({ objectsDir, temporaryDir }: DiskLayout): AsyncIterable<StoredObject> {
  for await (const folder of listFolder(objectsDir)) {
    if (!folder.isDirectory() || !isId(folder.name)) continue;
    const dir = join(objectsDir, folder.name);
    for await (const { name } of listFolder(dir)) {
      if (isId(name)) yield* describe(join(dir, name), objectKey(folder.name, name), false);
    }
  }
  for await (const { name } of listFolder(temporaryDir)) {
    const key = keyOfTemporary(name);
    if (key !== undefined) yield* describe(join(temporaryDir, name), key, true);
  }
}

async function* describe(path: string, key: string, unfinished: boolean): AsyncIterable<StoredObject> {
  const found = await stat(path).catch(ignoreMissing);
  if (found?.isFile()) yield { key, byteSize: found.size, unfinished };
}

/** Writes a byte, as a folder with write permission may be on a disk that is full or read-only. */
async function probe(layout: DiskLayout): Promise<void> {
  await createFolders(layout);
  await (await opendir(layout.objectsDir)).close();
  const path = join(layout.temporaryDir, '.check');
  const handle = await open(path, 'w', 0o600);
  try {
    await handle.write('.');
  } finally {
    await handle.close();
    await rm(path, { force: true });
  }
}
