import { randomBytes } from 'node:crypto';
import { copyFile, link, mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { unlessMissing } from '@latchkey/embedded/postgres/copy-files';
import { isId } from '@latchkey/files/storage/object-store/object-store';

const PREFIX = 'backup-';

export type ObjectSnapshot = Awaited<ReturnType<typeof createObjectSnapshot>>;

/**
 * Creates an empty snapshot next to the objects, where hard links are possible, and removes earlier
 * ones. A snapshot is a second name for each object, which can be copied also after its deletion.
 */
export async function createObjectSnapshot(objectsDir: string) {
  // An application's folder is removed with its last object.
  const list = async (...names: string[]) => (await unlessMissing(readdir(join(objectsDir, ...names)))) ?? [];
  for (const name of (await list()).filter((name) => name.startsWith(PREFIX))) {
    await rm(join(objectsDir, name), { recursive: true, force: true });
  }
  const dir = join(objectsDir, `${PREFIX}${randomBytes(4).toString('hex')}`);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const keys = new Set<string>();
  const add = async (key: string) => {
    const [source, target] = [join(objectsDir, 'objects', key), join(dir, key)];
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    // Some network file systems have no hard links.
    await link(source, target).catch(() => copyFile(source, target));
    keys.add(key);
  };
  return {
    /** Adds the objects that are new since the last call. */
    async update() {
      // Other names are of files that someone put there.
      for (const owner of (await list('objects')).filter(isId)) {
        for (const id of (await list('objects', owner)).filter(isId)) {
          if (!keys.has(`${owner}/${id}`)) await unlessMissing(add(`${owner}/${id}`));
        }
      }
    },
    /** `<owner>/<id>` of each object. */
    keys: (): Iterable<string> => keys,
    pathOf: (key: string) => join(dir, key),
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}
