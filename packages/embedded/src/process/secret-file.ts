import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { StartError } from './start-error.ts';

/**
 * Reads a file of secrets.
 *
 * @returns its JSON document, or `undefined` where the file is missing
 * @throws {StartError} when it can't be read or parsed. A parser's error would quote it.
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
 * Writes a JSON document that only its owner may read. The file appears complete or not at all, and
 * is on the disk when the promise resolves: the database may already know the secret.
 */
export async function writeSecretFile(path: string, document: unknown): Promise<void> {
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    await writeFile(draft, `${JSON.stringify(document, null, 2)}\n`, { mode: 0o600, flag: 'wx', flush: true });
    await rename(draft, path);
  } catch (err) {
    await rm(draft, { force: true });
    throw err;
  }
}

/** 192 random bits in characters that need no quoting in a URL, SQL or a configuration file. */
export function createPassword(): string {
  return randomBytes(24).toString('base64url');
}
