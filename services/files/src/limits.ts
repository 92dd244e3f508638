import type { FilesConfig } from './config.ts';

/** Length of an account's lease, which outlives the process of its upload. */
const UPLOAD_LEASE_MS = 10_000;
/** Downloads of one process; each takes a descriptor and up to 128 KiB. */
const DOWNLOADS_MAX = 200;
/** Pause between two sweeps, and how long a sweeper's claim on a row lasts. */
const SWEEP_INTERVAL_MS = 30_000;

export type FileLimits = Readonly<ReturnType<typeof createFileLimits>>;

export function createFileLimits(config: FilesConfig) {
  return {
    allowanceMib: config.STORAGE_ALLOWANCE_MIB,
    fileCountMax: config.FILE_COUNT_LIMIT,
    byteSizeMax: config.FILE_SIZE_LIMIT_MIB * 1024 * 1024,
    uploadDeadlineMs: config.UPLOAD_DEADLINE_SECONDS * 1_000,
    uploadLeaseMs: UPLOAD_LEASE_MS,
    downloadsMax: DOWNLOADS_MAX,
    sweepIntervalMs: SWEEP_INTERVAL_MS,
  };
}
