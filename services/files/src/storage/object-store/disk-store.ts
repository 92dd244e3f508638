import { open, opendir, rm, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import {
  createFolders,
  type DiskLayout,
  diskLayout,
  hasCode,
  objectPaths,
  removeEmptyFolder,
  syncFolder,
  temporaryPrefix,
} from './disk-layout.ts';
import { listFolder, listObjects } from './disk-list.ts';
import { writeObject } from './disk-write.ts';
import { FileBody, ReadQueue } from './file-body.ts';
import type { ByteRange, ObjectStore } from './object-store.ts';

/**
 * Keeps objects as files below a folder, which is made when it is first needed. Several processes of one machine, or of several on a file system
 * that they share, may use it at once.
 */
export function createDiskStore(dir: string): ObjectStore {
  const layout = diskLayout(dir);
  const reads = new ReadQueue();
  return {
    put: (key, body, signal, options) => writeObject(layout, key, body, signal, options),
    read: async (key, range) => readObject(objectPaths(layout, key).file, reads, range),
    localPath: (key) => objectPaths(layout, key).file,
    stat: async (key) => statFile(objectPaths(layout, key).file),
    remove: (...keys) => removeObjects(layout, keys),
    list: () => listObjects(layout),
    createDownloadUrl: async () => undefined,
    check: () => probe(layout),
    close: async () => undefined,
  };
}

async function readObject(path: string, reads: ReadQueue, range: ByteRange | undefined): Promise<Readable | undefined> {
  try {
    return new FileBody(await open(path, 'r'), reads, range);
  } catch (err) {
    return absent(err);
  }
}

async function statFile(path: string): Promise<{ byteSize: number } | undefined> {
  try {
    return { byteSize: (await stat(path)).size };
  } catch (err) {
    return absent(err);
  }
}

/**
 * What is unfinished goes first: a write that has not named its file yet finds it gone and fails, and one that has is removed with the object.
 */
async function removeObjects(layout: DiskLayout, keys: readonly string[]): Promise<void> {
  const paths = keys.map((key) => objectPaths(layout, key));
  const prefixes = keys.map(temporaryPrefix);
  for await (const { name } of listFolder(layout.temporaryDir)) {
    if (prefixes.some((prefix) => name.startsWith(prefix))) await removeFile(join(layout.temporaryDir, name));
  }
  for (const { file } of paths) await removeFile(file);
  for (const dir of new Set(paths.map((path) => path.dir))) {
    // Synced also where there was nothing: what removed it may have ended before its own sync.
    const changed = (await removeEmptyFolder(dir)) ? layout.objectsDir : dir;
    await syncFolder(changed).catch((err: unknown) => absent(err));
  }
}

async function removeFile(path: string): Promise<void> {
  await unlink(path).catch((err: unknown) => absent(err));
}

/** Writes a byte, as a folder that may be written can still be on a disk that is full or read-only. */
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

function absent(err: unknown): undefined {
  if (!hasCode(err, 'ENOENT')) throw err;
}
