import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { releaseBytes } from '@latchkey/kit/http/write-chunk';
import { type BodyReader, createBodyReader } from './body-reader.ts';
import { createFolders, type DiskLayout, hasCode, ignoreMissing, objectPaths, syncFolder, temporaryPath } from './disk-layout.ts';
import type { PutOptions } from './object-store.ts';

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
  const reader = createBodyReader(body, signal);
  let written = temporaryPath(layout, key);
  try {
    const handle = await openTemporary(layout, written);
    try {
      await writeBody(handle, reader);
      if (durable) await handle.sync();
    } finally {
      await handle.close();
    }
    signal.throwIfAborted();
    await publish(layout, written, paths);
    written = paths.file;
    if (durable) await syncFolders(layout, paths);
    signal.throwIfAborted();
  } catch (err) {
    // A later removal of the key finds what remains.
    await rm(written, { force: true }).catch(() => undefined);
    throw err;
  } finally {
    reader.close();
  }
}

/** Creates the folders only where they are missing, as they nearly always exist. */
export async function openTemporary(layout: DiskLayout, path: string, flags: 'wx' | 'a' = 'wx'): Promise<FileHandle> {
  const handle = await open(path, flags, 0o600).catch(ignoreMissing);
  if (handle) return handle;
  await createFolders(layout);
  return open(path, flags, 0o600);
}

/**
 * Writes a body, and returns its size. Fills one buffer while the other is written. No write is
 * under way when this settles.
 */
export async function writeBody(handle: FileHandle, reader: BodyReader): Promise<number> {
  let byteSize = 0;
  let filling: Buffer = Buffer.allocUnsafeSlow(WRITE_BYTES);
  let spare: Buffer | undefined;
  let writing = Promise.resolve();
  try {
    for (;;) {
      // A full disk ends a body that hangs.
      const [length] = await Promise.all([reader.fill(filling), writing]);
      if (length === 0) return byteSize;
      byteSize += length;
      writing = writeAll(handle, filling, length);
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

/** A write may take less than it is given, as just before the disk is full. */
async function writeAll(handle: FileHandle, buffer: Buffer, length: number): Promise<void> {
  for (let written = 0; written < length; ) {
    const { bytesWritten } = await handle.write(buffer, written, length - written);
    if (bytesWritten === 0) throw new Error('the disk took no more bytes');
    written += bytesWritten;
  }
}

/** Every time both: the write that created the folder of the application may not have synced it. */
export async function syncFolders({ objectsDir }: DiskLayout, { dir }: ReturnType<typeof objectPaths>): Promise<void> {
  await syncFolder(dir);
  await syncFolder(objectsDir);
}

/** The folder is missing for its first object, and after the removal of its last one. */
export async function publish(
  layout: DiskLayout,
  temporary: string,
  { dir, file }: ReturnType<typeof objectPaths>,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await rename(temporary, file);
    } catch (err) {
      if (!hasCode(err, 'ENOENT') || tries === RENAME_TRIES_MAX) throw err;
    }
    await mkdir(dir, { mode: 0o700 }).catch(async (err: unknown) => {
      if (hasCode(err, 'ENOENT')) await createFolders(layout);
      else if (!hasCode(err, 'EEXIST')) throw err;
    });
  }
}
