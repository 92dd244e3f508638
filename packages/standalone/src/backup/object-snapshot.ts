import { randomBytes } from 'node:crypto';
import { copyFile, link, mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const PREFIX = 'backup-';

/** A second name for each object on disk, so that it can be copied also after it was deleted. */
export interface ObjectSnapshot {
  /** Takes in the objects that are new since the last call. */
  update(): Promise<void>;
  /** `<owner>/<id>` of each object, and its path. */
  list(): Iterable<readonly [key: string, path: string]>;
  remove(): Promise<void>;
}

/** Makes an empty snapshot beside the objects, where hard links are possible, and removes what earlier ones left. */
export async function createObjectSnapshot(objectsDir: string): Promise<ObjectSnapshot> {
  await removeLeftovers(objectsDir);
  const dir = join(objectsDir, `${PREFIX}${randomBytes(4).toString('hex')}`);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const keys = new Set<string>();
  return {
    async update() {
      for await (const key of listKeys(join(objectsDir, 'objects'))) {
        if (keys.has(key) || !(await linkOrCopy(join(objectsDir, 'objects', key), join(dir, key)))) continue;
        keys.add(key);
      }
    },
    *list() {
      for (const key of keys) yield [key, join(dir, key)];
    },
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}

async function* listKeys(dir: string): AsyncGenerator<string> {
  for (const owner of await readFolder(dir)) {
    for (const object of await readFolder(join(dir, owner))) yield `${owner}/${object}`;
  }
}

/** @returns whether the object was still there */
async function linkOrCopy(source: string, target: string): Promise<boolean> {
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  try {
    // Some network file systems have no hard links.
    await link(source, target).catch(() => copyFile(source, target));
    return true;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw err;
  }
}

async function removeLeftovers(objectsDir: string): Promise<void> {
  for (const name of await readFolder(objectsDir)) {
    if (name.startsWith(PREFIX)) await rm(join(objectsDir, name), { recursive: true, force: true });
  }
}

/** Names in a folder; none if it is gone, as an application's folder goes with its last object. */
async function readFolder(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw err;
  }
}
