import type pg from 'pg';
import { integerSetting } from '../config.ts';
import type { Logger } from '../logger.ts';
import { createSweeper, type Sweeper } from '../sweeper.ts';
import { deleteOldEntries } from './audit-entry.store.ts';
import { leaveOutEntries } from './left-out.ts';

/** How many days entries are kept. */
export const auditRetentionSetting = integerSetting(1, 3_650).default(90);

/** What the log is trimmed with. */
export interface AuditTrimming {
  readonly pool: pg.Pool;
  readonly retentionDays: number;
  /** Most entries of one action that are kept for an account and a day. */
  readonly entriesPerDay: number;
  readonly logger: Logger;
}

/** What a day more or less is no matter for. */
const INTERVAL_MS = 10 * 60_000;

/** Most entries removed by one statement. */
export const BATCH_MAX = 1_000;

/** Removes entries that have been kept for long enough, and those that are too many, behind the scenes. */
export function createAuditSweeper({ logger, ...trimming }: AuditTrimming): Sweeper {
  return createSweeper({
    intervalMs: INTERVAL_MS,
    logger: logger.child({ sweep: 'audit log' }),
    sweeps: [(signal) => trimAuditLog(trimming, signal), (signal) => leaveOutEntries(trimming, signal)],
  });
}

/** Removes every entry that has been kept for long enough, some at a time; any number of processes may do so at once. */
export async function trimAuditLog(
  { pool, retentionDays }: Pick<AuditTrimming, 'pool' | 'retentionDays'>,
  signal: AbortSignal,
): Promise<void> {
  let removed = BATCH_MAX;
  while (removed === BATCH_MAX && !signal.aborted) removed = await deleteOldEntries(pool, retentionDays, BATCH_MAX);
}
