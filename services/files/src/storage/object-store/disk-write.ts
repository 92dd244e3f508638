import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { releaseBytes } from '@latchkey/kit/http/release-bytes';
import { BodyReader } from './body-reader.ts';
import {
  createFolders,
  type DiskLayout,
  hasCode,
  type ObjectPaths,
  objectPaths,
  syncFolder,
  temporaryPath,
} from './disk-layout.ts';
import type { PutOptions } from './object-store.ts';

/** One write costs as much whether it carries 64 KiB or 1 MiB; more than that gains nothing. */
const WRITE_BYTES = 1024 * 1024;
const RENAME_TRIES_MAX = 8;

/** Writes a body to a temporary file, makes that durable where it is to be, and gives it its name. Leaves nothing when it fails. */
export async function writeObject(
  layout: DiskLayout,
  key: string,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  { durable = true }: PutOptions = {},
): Promise<void> {
  const paths = objectPaths(layout, key);
  const temporary = temporaryPath(layout, key);
  const reader = new BodyReader(body, signal);
  try {
    const handle = await openTemporary(layout, temporary);
    try {
      await writeBody(handle, reader);
      if (durable) await handle.sync();
    } finally {
      await handle.close();
    }
    reader.throwIfFailed();
    await publish(layout, temporary, paths);
    if (durable) await makeNameDurable(layout, paths, reader);
  } catch (err) {
    await discard(temporary);
    throw err;
  } finally {
    reader.close();
  }
}

/** The folders are made only where they are missing, as they are there nearly always. */
async function openTemporary(layout: DiskLayout, path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (err) {
    if (!hasCode(err, 'ENOENT')) throw err;
    await createFolders(layout);
    return await open(path, 'wx', 0o600);
  }
}

/** Fills one buffer while the other is being written. Nothing is being written any more when this settles. */
async function writeBody(handle: FileHandle, reader: BodyReader): Promise<void> {
  let filling: Buffer = Buffer.allocUnsafeSlow(WRITE_BYTES);
  let spare: Buffer | undefined;
  let writing = Promise.resolve();
  try {
    for (;;) {
      const length = await reader.fill(filling);
      await writing;
      if (length === 0) return;
      writing = writeAll(handle, filling, length);
      // A disk that is full ends a body that hangs.
      writing.catch((err: unknown) => reader.fail(err));
      if (length < WRITE_BYTES) return await writing;
      [filling, spare] = [spare ?? Buffer.allocUnsafeSlow(WRITE_BYTES), filling];
    }
  } finally {
    await writing.catch(() => undefined);
    // Otherwise they weigh on the next collection of garbage, which looks at everything else as well (ADR 10).
    for (const buffer of [filling, spare]) if (buffer) releaseBytes(buffer);
  }
}

/** A write may take less than it is given, as before the disk is full. */
async function writeAll(handle: FileHandle, buffer: Buffer, length: number): Promise<void> {
  for (let written = 0; written < length; ) {
    const { bytesWritten } = await handle.write(buffer, written, length - written);
    if (bytesWritten === 0) throw new Error('the disk took no more bytes');
    written += bytesWritten;
  }
}

/** The folder is there unless this is its first object; whoever removes the last one removes it too, perhaps just before we move ours into it. */
async function publish(layout: DiskLayout, temporary: string, { dir, file }: ObjectPaths): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await rename(temporary, file);
    } catch (err) {
      if (!hasCode(err, 'ENOENT') || tries === RENAME_TRIES_MAX) throw err;
      await makeObjectFolder(layout, dir);
    }
  }
}

async function makeObjectFolder(layout: DiskLayout, dir: string): Promise<void> {
  try {
    await mkdir(dir, { mode: 0o700 });
  } catch (err) {
    if (hasCode(err, 'ENOENT')) await createFolders(layout);
    else if (!hasCode(err, 'EEXIST')) throw err;
  }
}

/** The folder's own name is synced every time: another write may have made it and not got so far yet. */
async function makeNameDurable(layout: DiskLayout, { dir, file }: ObjectPaths, reader: BodyReader): Promise<void> {
  try {
    await syncFolder(dir);
    await syncFolder(layout.objectsDir);
    reader.throwIfFailed();
  } catch (err) {
    await discard(file);
    throw err;
  }
}

/** What can't be removed now is found by a later removal of the key; the reason of the failure is what counts here. */
async function discard(path: string): Promise<void> {
  await rm(path, { force: true }).catch(() => undefined);
}
