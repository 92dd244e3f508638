import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

const CHUNK_BYTES = 256 * 1024;
const CONCURRENT_SYNCS = 16;

/** Gets the size of each piece that was read or copied, in bytes. */
export type OnBytes = (count: number) => void;

/**
 * Everything below a folder, a folder before its entries. Symbolic links are not followed. A folder
 * that is removed meanwhile counts as empty.
 *
 * @param isIncluded by its path below `dir`, whether a file, or a folder with its entries, is
 *   included
 */
export async function* walkFiles(dir: string, isIncluded: (name: string) => boolean = () => true) {
  const pending = [''];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    const entries = readdir(join(dir, folder), { withFileTypes: true });
    for (const entry of (await unlessMissing(entries)) ?? []) {
      const name = join(folder, entry.name);
      if (!(entry.isDirectory() || entry.isFile()) || !isIncluded(name)) continue;
      yield { path: join(dir, name), isFolder: entry.isDirectory() };
      if (entry.isDirectory()) pending.push(name);
    }
  }
}

/** @returns undefined where the file or folder is missing */
export async function unlessMissing<T>(operation: Promise<T>): Promise<T | undefined> {
  return operation.catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'ENOENT') return undefined;
    throw err;
  });
}

/**
 * Copies a file. The target must not exist, and is on the disk only after {@link syncFolder}; of a
 * copy that fails, the caller removes the folder.
 */
export async function copyFile(
  source: string,
  target: string,
  onBytes: OnBytes,
  { mayVanish = false }: { readonly mayVanish?: boolean } = {},
): Promise<void> {
  const from = await (mayVanish ? unlessMissing(open(source, 'r')) : open(source, 'r'));
  if (!from) return;
  const to = await open(target, 'wx', 0o600);
  try {
    for await (const chunk of readChunks(from)) {
      await to.writeFile(chunk);
      onBytes(chunk.length);
    }
  } finally {
    await to.close();
  }
}

/** Copies a folder's entries into another that exists. Files that vanish meanwhile are skipped. */
export async function copyFolder(
  source: string,
  target: string,
  onBytes: OnBytes,
  isIncluded?: (name: string) => boolean,
): Promise<void> {
  for await (const { path, isFolder } of walkFiles(source, isIncluded)) {
    const copy = join(target, relative(source, path));
    if (isFolder) await mkdir(copy, { mode: 0o700 });
    else await copyFile(path, copy, onBytes, { mayVanish: true });
  }
}

/** Flushes a file or a folder's list of entries to the disk. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}

export async function syncFolder(dir: string): Promise<void> {
  const entries = walkFiles(dir);
  const work = async () => {
    for await (const { path } of entries) await sync(path);
  };
  await Promise.all(Array.from({ length: CONCURRENT_SYNCS }, work));
  await sync(dir);
}

export async function hashFile(path: string, onBytes: OnBytes): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of readChunks(await open(path, 'r'))) {
    hash.update(chunk);
    onBytes(chunk.length);
  }
  return hash.digest('hex');
}

/**
 * Reads a file and closes it. A chunk is valid until the next one. A cluster has 1,000 small
 * files, for which streams are slow.
 */
async function* readChunks(file: FileHandle): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  try {
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
