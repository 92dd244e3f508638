import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { releaseBytes } from '@latchkey/kit/http/write-chunk';
import { type BodyReader, createBodyReader } from './body-reader.ts';
import { createFolders, type DiskLayout, listFolder, objectPaths, temporaryPath, temporaryPrefix } from './disk-layout.ts';
import { hasCode, ignore, ignoreMissing, syncFolder } from './make-folder.ts';
import { type Appended, type AppendOptions, LostBytesError, type PutOptions } from './object-store.ts';

/** One write costs the same for 64 KiB and for 1 MiB; more gains nothing. */
const WRITE_BYTES = 1024 * 1024;
const RENAME_TRIES_MAX = 8;

/**
 * Writes a body to a temporary file, syncs it, renames it and syncs its folders. Leaves nothing
 * when it fails.
 */
export async function writeObject(
  layout: DiskLayout,
  key: string,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  { durable = true }: PutOptions = {},
): Promise<void> {
  const paths = objectPaths(layout, key);
  let written = temporaryPath(layout, key);
  try {
    await appendBody(layout, { path: written, byteSize: 0, durable }, body, signal);
    signal.throwIfAborted();
    await publish(layout, written, paths);
    written = paths.file;
    if (durable) await syncFolders(layout, paths);
    signal.throwIfAborted();
  } catch (err) {
    // A later removal of the key finds what remains.
    await rm(written, { force: true }).catch(() => undefined);
    throw err;
  }
}

/** The temporary file, by what follows its prefix. */
type State = Appended['state'] & { readonly file?: string };

/**
 * Appends to the temporary file of a key, and syncs it. A contested one is copied first: a process
 * that lost its claim may still have the old file open.
 */
export async function appendToFile(
  layout: DiskLayout,
  key: string,
  { byteSize, state }: Appended,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  { writerId, isContested }: AppendOptions,
): Promise<Appended> {
  const { file: known }: State = state;
  const file = isContested ? writerId : (known ?? writerId);
  const path = temporaryPath(layout, key, file);
  if (byteSize > 0 && file !== known) {
    // `copyFile` never ends where the other process truncates the file meanwhile.
    const bytes = createReadStream(temporaryPath(layout, key, known), { end: byteSize - 1 });
    await pipeline(bytes, createWriteStream(path, { mode: 0o600 })).catch(rejectLost);
  }
  const appended = await appendBody(layout, { path, byteSize, durable: true }, body, signal);
  if (file !== known) await syncFolder(layout.temporaryDir);
  return { byteSize: byteSize + appended, state: { file } as State };
}

/** Renames the temporary file of a key, syncs its folders, and removes what contests left. */
export async function publishFile(layout: DiskLayout, key: string, { byteSize, state }: Appended): Promise<void> {
  const paths = objectPaths(layout, key);
  const path = temporaryPath(layout, key, (state as State).file);
  const unpublished = await stat(path).catch(ignoreMissing);
  const { size } = unpublished ?? (await stat(paths.file).catch(rejectLost));
  if (size !== byteSize) throw new LostBytesError();
  if (unpublished) await publish(layout, path, paths);
  await syncFolders(layout, paths);
  await removeTemporary(layout, [key]);
}

export async function removeTemporary({ temporaryDir }: DiskLayout, keys: readonly string[]): Promise<void> {
  const prefixes = keys.map(temporaryPrefix);
  for await (const { name } of listFolder(temporaryDir)) {
    if (prefixes.some((prefix) => name.startsWith(prefix))) await unlink(join(temporaryDir, name)).catch(ignoreMissing);
  }
}

function rejectLost(err: unknown): never {
  ignoreMissing(err);
  throw new LostBytesError();
}

/** Writes a body after the first bytes of a temporary file; returns how many it had. */
async function appendBody(
  layout: DiskLayout,
  { path, byteSize, durable }: { readonly path: string; readonly byteSize: number; readonly durable: boolean },
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  const reader = createBodyReader(body, signal);
  try {
    const handle = await openTemporary(layout, path);
    try {
      if ((await handle.stat()).size < byteSize) throw new LostBytesError();
      await handle.truncate(byteSize);
      const appended = await writeBody(handle, reader);
      if (durable) await handle.sync();
      return appended;
    } finally {
      await handle.close();
    }
  } finally {
    reader.close();
  }
}

/** Creates the folders only where they are missing, as they nearly always exist. */
async function openTemporary(layout: DiskLayout, path: string): Promise<FileHandle> {
  const handle = await open(path, 'a', 0o600).catch(ignoreMissing);
  if (handle) return handle;
  await createFolders(layout);
  return open(path, 'a', 0o600);
}

/**
 * Writes a body, and returns its size. Fills one buffer while the other is written. No write is
 * under way when this settles.
 */
async function writeBody(handle: FileHandle, reader: BodyReader): Promise<number> {
  let byteSize = 0;
  let filling: Buffer = Buffer.allocUnsafeSlow(WRITE_BYTES);
  let spare: Buffer | undefined;
  let writing = Promise.resolve();
  try {
    for (;;) {
      // A full disk ends a body that hangs.
      const [length] = await Promise.all([reader.fill(filling), writing]);
      byteSize += length;
      writing = handle.writeFile(filling.subarray(0, length));
      if (length < WRITE_BYTES) {
        await writing;
        return byteSize;
      }
      [filling, spare] = [spare ?? Buffer.allocUnsafeSlow(WRITE_BYTES), filling];
    }
  } finally {
    await writing.catch(() => undefined);
    // Otherwise they weigh on the next garbage collection, which visits everything else as well
    // (ADR 10).
    for (const buffer of [filling, spare]) if (buffer) releaseBytes(buffer);
  }
}

/** Every time both: the write that created the folder of the application may not have synced it. */
async function syncFolders({ objectsDir }: DiskLayout, { dir }: ReturnType<typeof objectPaths>): Promise<void> {
  await syncFolder(dir);
  await syncFolder(objectsDir);
}

/** The folder is missing for its first object, and after the removal of its last one. */
async function publish(layout: DiskLayout, temporary: string, { dir, file }: ReturnType<typeof objectPaths>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await rename(temporary, file);
    } catch (err) {
      if (!hasCode(err, 'ENOENT') || tries === RENAME_TRIES_MAX) throw err;
    }
    await mkdir(dir, { mode: 0o700 }).catch(async (err: unknown) => {
      ignore('ENOENT', 'EEXIST')(err);
      if (hasCode(err, 'ENOENT')) await createFolders(layout);
    });
  }
}
