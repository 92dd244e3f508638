/** Age to which the apps service lists deletions: a service that was away for less misses none. */
export const DELETIONS_RETAINED_MS = 30 * 24 * 3_600_000;
