import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { StartError } from './start-error.ts';

/**
 * Reads a file of secrets.
 *
 * @returns the JSON document in the file, or `undefined` when there is no such file
 * @throws {StartError} naming the file, when it can't be read or holds something else. A parser's error would quote it.
 */
export async function readSecretFile(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code !== undefined) throw new StartError(`${path} can't be read (${code}): check who owns it.`, { cause: err });
    throw new StartError(`${path} is damaged: it is not valid JSON. Restore the file from a backup.`);
  }
}

/**
 * Writes a JSON document that only its owner may read. The file appears complete or not at all, and is on the
 * disk when the promise resolves: a secret that the database already knows must not get lost in a power cut.
 */
export async function writeSecretFile(path: string, document: unknown): Promise<void> {
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(document, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    await rename(draft, path);
  } catch (err) {
    await rm(draft, { force: true });
    throw err;
  }
}

/** 192 bits of randomness in characters that need no quoting in a URL, in SQL or in a configuration file. */
export function createPassword(): string {
  return randomBytes(24).toString('base64url');
}
