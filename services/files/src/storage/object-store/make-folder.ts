import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates a folder and its missing parents, and returns the topmost new one. Node's recursive
 * `mkdir` never ends where a file system fails with ENOENT, as below /proc.
 */
export async function makeFolder(path: string, mode: number): Promise<string | undefined> {
  const make = async () => {
    try {
      await mkdir(path, { mode });
      return path;
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
      throw err;
    }
  };
  try {
    return await make();
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw err;
  }
  const topmost = await makeFolder(dirname(path), mode);
  const made = await make();
  return topmost ?? made;
}
