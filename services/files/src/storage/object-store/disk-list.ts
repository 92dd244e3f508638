import type { Dirent } from 'node:fs';
import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type DiskLayout, hasCode, keyOfTemporary } from './disk-layout.ts';
import { isId } from './object-key-parts.ts';
import type { StoredObject } from './object-store.ts';

/** Every object and every temporary file. What is none of ours is passed over. */
export async function* listObjects({ objectsDir, temporaryDir }: DiskLayout): AsyncIterable<StoredObject> {
  for await (const folder of listFolder(objectsDir)) {
    if (!folder.isDirectory() || !isId(folder.name)) continue;
    for await (const { name } of listFolder(join(objectsDir, folder.name))) {
      if (!isId(name)) continue;
      yield* describe(join(objectsDir, folder.name, name), `${folder.name}/${name}`, false);
    }
  }
  for await (const { name } of listFolder(temporaryDir)) {
    const key = keyOfTemporary(name);
    if (key !== undefined) yield* describe(join(temporaryDir, name), key, true);
  }
}

/** The entries of a folder, a few at a time; none where it is not there. */
export async function* listFolder(path: string): AsyncIterable<Dirent> {
  try {
    yield* await opendir(path);
  } catch (err) {
    if (!hasCode(err, 'ENOENT')) throw err;
  }
}

async function* describe(path: string, key: string, unfinished: boolean): AsyncIterable<StoredObject> {
  const found = await stat(path).catch((err: unknown) => {
    // It was removed or named meanwhile.
    if (!hasCode(err, 'ENOENT')) throw err;
  });
  if (found?.isFile()) yield { key, byteSize: found.size, unfinished };
}
