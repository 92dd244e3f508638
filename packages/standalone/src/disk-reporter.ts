import { type DiskFullError, diskFullError } from '@latchkey/embedded/disk-full';

const INTERVAL_MS = 60_000;

/**
 * Reports full disks, each at most once a minute: servers and services complain several times a
 * second.
 */
export interface DiskReporter {
  report(err: DiskFullError): void;
  /** Reports the disk that holds a folder. */
  reportFolder(folder: string): Promise<void>;
}

/** @param now the time in milliseconds */
export function createDiskReporter(warn: (line: string) => void, now = () => performance.now()): DiskReporter {
  const reportedAt = new Map<string, number>();
  const report = ({ mount, message }: DiskFullError) => {
    if (now() - (reportedAt.get(mount) ?? Number.NEGATIVE_INFINITY) < INTERVAL_MS) return;
    reportedAt.set(mount, now());
    warn(message);
  };
  return { report, reportFolder: async (folder) => report(await diskFullError(folder)) };
}
