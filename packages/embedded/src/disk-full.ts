import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StartError } from './start-error.ts';

/** What the system says, in C's words or as a code of Node.js, where a disk or a quota is used up. */
const DISK_FULL = /No space left on device|Disk quota exceeded|\b(?:ENOSPC|EDQUOT)\b/i;

/** A full disk. The launcher retries until there is space. */
export class DiskFullError extends StartError {
  /** The folder that the disk is mounted on. */
  readonly mount: string;

  constructor(folder: string, mount: string, cause?: unknown) {
    const message = `The disk mounted on ${mount} is full; it holds ${folder}. Free some space: Latchkey tries again by itself.`;
    super(message, { cause });
    this.mount = mount;
  }
}

/** Whether a line of a server's log, or an error, says that a disk is full. */
export function saysDiskFull(said: unknown): boolean {
  if (said instanceof StartError && said.detail.some(saysDiskFull)) return true;
  return DISK_FULL.test(said instanceof Error ? said.message : String(said));
}

/** The error for a full disk that holds a folder. */
export async function diskFullError(folder: string, cause?: unknown): Promise<DiskFullError> {
  return new DiskFullError(folder, await findMount(folder), cause);
}

/**
 * Does what writes below a folder.
 *
 * @throws {DiskFullError} in the place of any error that says so
 */
export async function explainFullDisk<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (err) {
    throw saysDiskFull(err) && !(err instanceof DiskFullError) ? await diskFullError(folder, err) : err;
  }
}

/** The topmost folder on the same file system; of a folder that is missing, that of the one above it. */
async function findMount(folder: string): Promise<string> {
  const above = dirname(folder);
  if (above === folder) return folder;
  const [own, next] = await Promise.all([stat(folder).catch(() => undefined), stat(above).catch(() => undefined)]);
  return own === undefined || own.dev === next?.dev ? findMount(above) : folder;
}
