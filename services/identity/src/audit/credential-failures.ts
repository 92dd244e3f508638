import type { Origin } from '@latchkey/audit/actor';
import { recordAuditUpTo } from '@latchkey/audit/record';
import type { Logger } from '@latchkey/kit/log/logger';
import { sql } from 'kysely';
import type { Db } from '../db/schema.ts';

export interface CredentialFailure {
  readonly accountId: string;
  readonly action: 'account.sign_in_failed' | 'account.proof_failed';
  readonly reason: 'wrong_password' | 'too_many_passwords' | 'wrong_code' | 'too_many_codes';
  readonly origin: Origin;
}

export type CredentialFailureLog = ReturnType<typeof createCredentialFailureLog>;

/** Per account, action and reason: a password guesser must not fill the audit log. */
const ENTRIES_PER_HOUR = 20;
/** Late enough that writing one failure does not slow the next responses measurably. */
const DELAY_MS = 5_000;
/** Failures over this are dropped. */
const QUEUE_MAX = 1_000;

interface Queued extends CredentialFailure {
  readonly failedAtMs: number;
}

/**
 * Writes credential failures to the audit log in the background, one batch at a time, so that they
 * use one connection at most.
 */
export function createCredentialFailureLog(db: Db, logger: Logger, queueMax = QUEUE_MAX) {
  let queue: Queued[] = [];
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  const writeQueue = async () => {
    const batch = queue;
    queue = [];
    await writeAll(db, batch).catch((err: unknown) => logger.warn({ err }, 'credential failures not written to the audit log'));
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    writing = writing.then(writeQueue);
    return writing;
  };
  return {
    /** Queues a failure. The response time must not show that it is written. */
    record(failure: CredentialFailure): void {
      const alike = queue.filter((one) => isAlike(one, failure)).length;
      if (queue.length >= queueMax || alike >= ENTRIES_PER_HOUR) return;
      queue.push({ ...failure, failedAtMs: performance.now() });
      timer ??= setTimeout(flush, DELAY_MS);
    },
    flush,
  };
}

function isAlike(a: CredentialFailure, b: CredentialFailure): boolean {
  return a.accountId === b.accountId && a.action === b.action && a.reason === b.reason;
}

async function writeAll(db: Db, batch: readonly Queued[]): Promise<void> {
  if (batch.length === 0) return;
  // Entries are dated by the clock of the database.
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
  const originMs = (rows[0]?.now ?? new Date()).getTime() - performance.now();
  for (const { accountId, action, reason, origin, failedAtMs } of batch) {
    const subject = { kind: 'account', id: accountId } as const;
    const event = { accountId, action, subject, changes: { reason }, at: new Date(originMs + failedAtMs) };
    await db.transaction().execute((tx) => recordAuditUpTo(tx, origin, event, ENTRIES_PER_HOUR));
  }
}
