import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StartError } from './start-error.ts';

/** The messages of C and the codes of Node.js for a full disk or a used-up quota. */
const DISK_FULL = /No space left on device|Disk quota exceeded|\b(?:ENOSPC|EDQUOT)\b/i;

/** A full disk. The launcher retries until there is space. */
export class DiskFullError extends StartError {
  /** The folder that the disk is mounted on. */
  readonly mount: string;

  constructor(folder: string, mount: string, cause?: unknown) {
    super(`The disk mounted on ${mount} is full; it holds ${folder}. Free some space: Latchkey tries again by itself.`, {
      cause,
    });
    this.mount = mount;
  }
}

/** Whether an error, or a line of a server's log, reports a full disk. */
export function saysDiskFull(said: unknown): boolean {
  if (said instanceof StartError && said.detail.some(saysDiskFull)) return true;
  return DISK_FULL.test(said instanceof Error ? said.message : String(said));
}

/** The error for the full disk that holds a folder. */
export async function diskFullError(folder: string, cause?: unknown): Promise<DiskFullError> {
  return new DiskFullError(folder, await findMount(folder), cause);
}

/**
 * Runs work that writes below a folder.
 *
 * @throws {DiskFullError} instead of any error that reports a full disk
 */
export async function explainFullDisk<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (err) {
    throw saysDiskFull(err) && !(err instanceof DiskFullError) ? await diskFullError(folder, err) : err;
  }
}

/** The topmost folder on the same file system. The folder itself may be missing. */
async function findMount(folder: string): Promise<string> {
  const above = dirname(folder);
  if (above === folder) return folder;
  const [own, next] = await Promise.all([folder, above].map((path) => stat(path).catch(() => undefined)));
  return own === undefined || own.dev === next?.dev ? findMount(above) : folder;
}
