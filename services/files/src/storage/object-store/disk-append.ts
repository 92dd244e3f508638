import { createReadStream, createWriteStream } from 'node:fs';
import { stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createBodyReader } from './body-reader.ts';
import {
  type DiskLayout,
  ignoreMissing,
  listFolder,
  objectPaths,
  syncFolder,
  temporaryPath,
  temporaryPrefix,
} from './disk-layout.ts';
import { openTemporary, publish, syncFolders, writeBody } from './disk-write.ts';
import { type Appended, type AppendOptions, LostBytesError } from './object-store.ts';

/** The temporary file, by what follows its prefix. */
type State = Appended['state'] & { readonly file?: string };

/**
 * Appends to the temporary file of a key, and syncs it. A contested one is copied first: a process
 * that lost its claim may still have the old file open.
 */
export async function appendToFile(
  layout: DiskLayout,
  key: string,
  from: Appended,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  { writerId, isContested }: AppendOptions,
): Promise<Appended> {
  const { file: known }: State = from.state;
  const file = isContested ? writerId : (known ?? writerId);
  const path = temporaryPath(layout, key, file);
  if (known !== undefined && file !== known) await copyStart(temporaryPath(layout, key, known), path, from.byteSize);
  const reader = createBodyReader(body, signal);
  try {
    const handle = await openTemporary(layout, path, 'a');
    try {
      if ((await handle.stat()).size < from.byteSize) throw new LostBytesError();
      await handle.truncate(from.byteSize);
      const byteSize = from.byteSize + (await writeBody(handle, reader));
      await handle.sync();
      if (file !== known) await syncFolder(layout.temporaryDir);
      return { byteSize, state: { file } as State };
    } finally {
      await handle.close();
    }
  } finally {
    reader.close();
  }
}

/** `copyFile` never ends where the other process truncates the file meanwhile. */
async function copyStart(source: string, target: string, byteSize: number): Promise<void> {
  const bytes = createReadStream(source, { end: byteSize - 1 });
  await pipeline(bytes, createWriteStream(target, { mode: 0o600 })).catch(rejectLost);
}

/** Renames the temporary file of a key, syncs its folders, and removes what contests left. */
export async function publishFile(layout: DiskLayout, key: string, { byteSize, state }: Appended): Promise<void> {
  const paths = objectPaths(layout, key);
  const path = temporaryPath(layout, key, (state as State).file);
  const { size } = (await stat(path).catch(ignoreMissing)) ?? (await stat(paths.file).catch(rejectLost));
  if (size !== byteSize) throw new LostBytesError();
  if (await stat(path).catch(ignoreMissing)) await publish(layout, path, paths);
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
