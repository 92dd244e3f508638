import { StartError } from './start-error.ts';

/** The messages of C and the codes of Node.js for a full disk or a used-up quota. */
const DISK_FULL = /No space left on device|Disk quota exceeded|\b(?:ENOSPC|EDQUOT)\b/i;

/** A full disk. The launcher retries until there is space. */
export class DiskFullError extends StartError {
  constructor(folder: string, cause?: unknown) {
    super(`The disk that holds ${folder} is full. Free some space: Latchkey tries again by itself.`, { cause });
  }
}

/** True if an error, or a line of a server's log, reports a full disk. */
export function isDiskFull(reported: unknown): boolean {
  if (reported instanceof StartError && reported.detail.some(isDiskFull)) return true;
  return DISK_FULL.test(reported instanceof Error ? reported.message : String(reported));
}

/** @throws {DiskFullError} instead of any error of `work` that reports a full disk */
export async function explainFullDisk<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (err) {
    throw isDiskFull(err) && !(err instanceof DiskFullError) ? new DiskFullError(folder, err) : err;
  }
}
