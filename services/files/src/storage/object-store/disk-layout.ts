import { randomBytes } from 'node:crypto';
import { open, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { makeFolder } from '@latchkey/kit/make-folder';
import { isId, requireObjectKey } from './object-key-parts.ts';

const SEPARATOR = '.';

const FOLDER_MODE = 0o700;

/** Where things lie on the disk. Objects are `objects/<application id>/<file id>`; whatever is being written lies in `tmp`. */
export interface DiskLayout {
  readonly objectsDir: string;
  readonly temporaryDir: string;
}

/** The paths of one object. */
export interface ObjectPaths {
  /** The application's folder. */
  readonly dir: string;
  readonly file: string;
}

export function diskLayout(dir: string): DiskLayout {
  return { objectsDir: resolve(dir, 'objects'), temporaryDir: resolve(dir, 'tmp') };
}

/** Throws for what is no key. */
export function objectPaths({ objectsDir }: DiskLayout, key: string): ObjectPaths {
  const { applicationId, fileId } = requireObjectKey(key);
  const dir = join(objectsDir, applicationId);
  return { dir, file: join(dir, fileId) };
}

/** A path for one write of a key: no two writes share one, and whoever knows the key finds it again. */
export function temporaryPath({ temporaryDir }: DiskLayout, key: string): string {
  return join(temporaryDir, `${temporaryPrefix(key)}${randomBytes(8).toString('hex')}`);
}

/** What the names of all temporary files of a key begin with. */
export function temporaryPrefix(key: string): string {
  const { applicationId, fileId } = requireObjectKey(key);
  return [applicationId, fileId, ''].join(SEPARATOR);
}

/** The key that a temporary file was for, or undefined where it is none of ours. */
export function keyOfTemporary(name: string): string | undefined {
  const [applicationId = '', fileId = '', suffix = '', ...more] = name.split(SEPARATOR);
  return more.length === 0 && suffix !== '' && isId(applicationId) && isId(fileId) ? `${applicationId}/${fileId}` : undefined;
}

/** Makes the store's folders where they are not there, and their names durable. */
export async function createFolders({ objectsDir, temporaryDir }: DiskLayout): Promise<void> {
  // The first may make the folders above both, so its answer is the higher one.
  const made = [await makeFolder(objectsDir, FOLDER_MODE), await makeFolder(temporaryDir, FOLDER_MODE)];
  const firstMade = made[0] ?? made[1];
  if (firstMade === undefined) return;
  for (let dir = dirname(objectsDir); ; dir = dirname(dir)) {
    await syncFolder(dir);
    if (dir === dirname(firstMade) || dir === dirname(dir)) return;
  }
}

/** Makes the names in a folder durable. */
export async function syncFolder(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes a folder if it is empty; gives whether it did. */
export async function removeEmptyFolder(dir: string): Promise<boolean> {
  try {
    await rmdir(dir);
    return true;
  } catch (err) {
    if (hasCode(err, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) return false;
    throw err;
  }
}

/** Whether an error is one of the system's with one of some codes. */
export function hasCode(err: unknown, ...codes: string[]): boolean {
  return codes.includes((err as NodeJS.ErrnoException | undefined)?.code ?? '');
}
