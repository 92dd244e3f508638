import { integerSetting } from '@latchkey/kit/config/settings';
import { deleteExpired } from '@latchkey/kit/database/delete-expired';
import type { Logger } from '@latchkey/kit/log/logger';
import { createSweeper, deleteInBatches, type Sweeper } from '@latchkey/kit/sweeper/sweeper';
import type { Kysely } from 'kysely';
import type pg from 'pg';
import { deleteOldEntries, replaceSurplus, selectSurplus } from './retention.store.ts';

/** AUDIT_RETENTION_DAYS: how long entries are stored, in days. */
export const auditRetentionSetting = integerSetting(1, 3_650).default(90);

/** Entries of one action that an account may have in a day of UTC: 1.6 MB at most. */
const ENTRIES_PER_DAY = 2_000;
const INTERVAL_MS = 10 * 60_000;
const MINUTES = 60;

export const BATCH_MAX = 1_000;

/**
 * Deletes old entries, and replaces an account's entries beyond the first of a day and an action by
 * one that counts them. Also deletes expired results of calls with an idempotency key. Any number
 * of processes may do so concurrently.
 */
export function createAuditSweeper<DB>(options: {
  readonly db: Kysely<DB>;
  readonly pool: pg.Pool;
  readonly retentionDays: number;
  readonly entriesPerDay?: number;
  readonly logger: Logger;
}): Sweeper {
  const { db, pool, retentionDays, entriesPerDay = ENTRIES_PER_DAY, logger } = options;
  return createSweeper({
    intervalMs: INTERVAL_MS,
    logger: logger.child({ sweep: 'audit log' }),
    sweeps: {
      audit_entries: (signal) => deleteInBatches(BATCH_MAX, signal, (limit) => deleteOldEntries(pool, retentionDays, limit)),
      idempotency_results: (signal) => deleteExpired(db, { table: 'idempotency_record', since: 'expires_at' }, 'now', signal),
      async audit_surplus(signal) {
        // The newest first, so that no minute is left out while time passes.
        for (let minute = 1; minute <= MINUTES && !signal.aborted; minute += 1)
          for (const surplus of await selectSurplus(pool, minute, entriesPerDay, BATCH_MAX))
            await deleteInBatches(BATCH_MAX, signal, (limit) => replaceSurplus(pool, surplus, entriesPerDay, limit));
      },
    },
  });
}
