import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a folder, and those above it that are missing. Node's own recursive `mkdir` never ends where a system folder refuses with "no such file", as
 * below /proc.
 *
 * @param path absolute
 * @returns the topmost folder that was made, or undefined where there was nothing to make
 * @throws what the system refuses with
 */
export async function makeFolder(path: string, mode: number): Promise<string | undefined> {
  try {
    return await makeOne(path, mode);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw err;
  }
  const topmost = await makeFolder(dirname(path), mode);
  const made = await makeOne(path, mode);
  return topmost ?? made;
}

async function makeOne(path: string, mode: number): Promise<string | undefined> {
  try {
    await mkdir(path, { mode });
    return path;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    throw err;
  }
}
