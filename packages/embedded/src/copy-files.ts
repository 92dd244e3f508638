import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';

const CHUNK_BYTES = 1024 * 1024;

/** A file or a folder below another. */
export interface Entry {
  readonly path: string;
  readonly isFolder: boolean;
}

/**
 * Everything below a folder, a folder before its entries. Symbolic links are not followed, and a
 * folder that is removed meanwhile counts as empty.
 *
 * @param isIncluded whether a file, or a folder and its entries, is included, by its path below
 *   `dir`; all by default
 */
export async function* walkFiles(dir: string, isIncluded: (name: string) => boolean = () => true): AsyncGenerator<Entry> {
  const pending = [''];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const entry of await readFolder(join(dir, folder))) {
      const name = join(folder, entry.name);
      if (!(entry.isDirectory() || entry.isFile()) || !isIncluded(name)) continue;
      yield { path: join(dir, name), isFolder: entry.isDirectory() };
      if (entry.isDirectory()) pending.push(name);
    }
  }
}

function readFolder(path: string) {
  return readdir(path, { withFileTypes: true }).catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'ENOENT') return [];
    throw err;
  });
}

/**
 * Copies a file. The target must not exist, and is on the disk only after {@link syncFolder}.
 *
 * @param onBytes gets the size of each piece that was copied
 * @param options.mayVanish whether a source that is removed before it is read is passed over
 */
export async function copyFile(
  source: string,
  target: string,
  onBytes: (count: number) => void,
  options: { readonly mayVanish?: boolean } = {},
): Promise<void> {
  const from = await open(source, 'r').catch((err: NodeJS.ErrnoException) => {
    if (options.mayVanish && err.code === 'ENOENT') return undefined;
    throw err;
  });
  if (!from) return;
  const to = await open(target, 'wx', 0o600).catch(async (err) => {
    await from.close();
    throw err;
  });
  try {
    for await (const chunk of from.createReadStream({ highWaterMark: CHUNK_BYTES })) {
      await to.appendFile(chunk);
      onBytes(chunk.length);
    }
  } catch (err) {
    await rm(target, { force: true });
    throw err;
  } finally {
    await to.close();
  }
}

/**
 * Copies what is in a folder into another that exists. Files that are removed meanwhile are passed over.
 *
 * @param isIncluded whether a file or folder is copied, by its path below the source; all by default
 */
export async function copyFolder(
  source: string,
  target: string,
  onBytes: (count: number) => void,
  isIncluded?: (name: string) => boolean,
): Promise<void> {
  for await (const { path, isFolder } of walkFiles(source, isIncluded)) {
    const name = relative(source, path);
    if (isFolder) await mkdir(join(target, name), { mode: 0o700 });
    else await copyFile(path, join(target, name), onBytes, { mayVanish: true });
  }
}

const SYNCS_AT_ONCE = 16;

/** Makes durable what was copied into a folder. */
export async function syncFolder(dir: string): Promise<void> {
  const entries = walkFiles(dir);
  const sync = async (path: string) => {
    const handle = await open(path, 'r');
    await handle.sync().finally(() => handle.close());
  };
  const work = async () => {
    for await (const { path } of entries) await sync(path);
  };
  await Promise.all(Array.from({ length: SYNCS_AT_ONCE }, work));
  await sync(dir);
}

/** SHA-256 in hex. */
export async function hashFile(path: string, onBytes: (count: number) => void): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    hash.update(chunk);
    onBytes(chunk.length);
  }
  return hash.digest('hex');
}
