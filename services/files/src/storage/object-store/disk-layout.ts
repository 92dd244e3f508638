import { randomBytes } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ignoreMissing, makeFolder } from './make-folder.ts';
import { isId, objectKey, requireObjectKey } from './object-store.ts';

const SEPARATOR = '.';
const FOLDER_MODE = 0o700;

/** Objects are `objects/<application id>/<file id>`; what is being written is in `tmp`. */
export interface DiskLayout {
  readonly objectsDir: string;
  readonly temporaryDir: string;
}

export function diskLayout(dir: string): DiskLayout {
  return { objectsDir: resolve(dir, 'objects'), temporaryDir: resolve(dir, 'tmp') };
}

export function objectPaths({ objectsDir }: DiskLayout, key: string) {
  const { ownerId, id } = requireObjectKey(key);
  const dir = join(objectsDir, ownerId);
  return { dir, file: join(dir, id) };
}

/** A unique path for one write of a key, which {@link temporaryPrefix} finds again. */
export function temporaryPath(
  { temporaryDir }: DiskLayout,
  key: string,
  suffix: string = randomBytes(8).toString('hex'),
): string {
  return join(temporaryDir, `${temporaryPrefix(key)}${suffix}`);
}

export function temporaryPrefix(key: string): string {
  const { ownerId, id } = requireObjectKey(key);
  return [ownerId, id, ''].join(SEPARATOR);
}

/** The key of a temporary file, or undefined for a foreign name. */
export function keyOfTemporary(name: string): string | undefined {
  const [ownerId = '', id = '', suffix = '', ...more] = name.split(SEPARATOR);
  return more.length === 0 && suffix !== '' && isId(ownerId) && isId(id) ? objectKey(ownerId, id) : undefined;
}

export async function createFolders({ objectsDir, temporaryDir }: DiskLayout): Promise<void> {
  for (const dir of [objectsDir, temporaryDir]) await makeFolder(dir, FOLDER_MODE);
}

/** The entries of a folder, a few at a time; none where it does not exist. */
export async function* listFolder(path: string): AsyncIterable<Dirent> {
  try {
    yield* await opendir(path);
  } catch (err) {
    ignoreMissing(err);
  }
}
