import { USAGE_DAYS_MAX } from '@latchkey/contract/limits';
import { dayBefore } from '@latchkey/kit/database/daily-counts';
import { deleteExpired } from '@latchkey/kit/database/delete-expired';
import { sql } from 'kysely';
import type { IdentityContext } from '../context.ts';
import { LINKS_WINDOW_MS } from '../mail/link.ts';
import { IDLE_LIFETIME_MS } from '../session/session.ts';

const HOUR_MS = 3_600_000;
const DELETIONS_MS = 30 * 24 * HOUR_MS;

export function expirySweeps({ db, clock }: Pick<IdentityContext, 'db' | 'clock'>) {
  const sweepAt = (ageMs: number, rows: Parameters<typeof deleteExpired>[1]) => (signal: AbortSignal) =>
    deleteExpired(db, rows, new Date(clock().getTime() - ageMs), signal);
  return {
    // Sessions that expire become idle too.
    sessions: sweepAt(IDLE_LIFETIME_MS, { table: 'session', since: 'last_seen_at' }),
    used_tokens: sweepAt(0, { table: 'used_token', since: 'expires_at' }),
    // For an hour, the use of an expired key is answered with `api_key_expired`.
    exchanges: sweepAt(HOUR_MS, { table: 'api_key', since: 'expires_at', where: sql`trusted_issuer_id is not null` }),
    mails: sweepAt(LINKS_WINDOW_MS, { table: 'mail', since: 'created_at' }),
    deletions: sweepAt(DELETIONS_MS, { table: 'deleted_account', since: 'deleted_at', where: sql`completed_at is not null` }),
    daily_requests: (signal: AbortSignal) =>
      deleteExpired(db, { table: 'daily_requests', since: 'day' }, dayBefore(clock(), USAGE_DAYS_MAX), signal),
  };
}
