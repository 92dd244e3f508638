import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates a folder and its missing parents, with durable names. Node's recursive `mkdir` never ends
 * where a file system fails with ENOENT, as below /proc.
 */
export async function makeFolder(path: string, mode: number): Promise<void> {
  const make = () => mkdir(path, { mode }).then(() => syncFolder(dirname(path)), ignore('EEXIST'));
  await make().catch(async (err: unknown) => {
    if (dirname(path) === path) throw err;
    ignore('ENOENT')(err);
    await makeFolder(dirname(path), mode);
    await make();
  });
}

export async function syncFolder(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  await handle.sync().finally(() => handle.close());
}

export function hasCode(err: unknown, ...codes: string[]): boolean {
  return codes.includes((err as NodeJS.ErrnoException | undefined)?.code ?? '');
}

/** Throws an error again unless it has one of the codes. */
export function ignore(...codes: string[]) {
  return (err: unknown): undefined => {
    if (!hasCode(err, ...codes)) throw err;
  };
}

export const ignoreMissing = ignore('ENOENT');
