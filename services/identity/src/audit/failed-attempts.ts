import type { Origin } from '@latchkey/audit/actor';
import { recordAuditUpTo } from '@latchkey/audit/record';
import type { Logger } from '@latchkey/kit/logger';
import { type Kysely, sql } from 'kysely';
import type { IdentityDatabase } from '../db/schema.ts';

/** Something that takes a password or a code of an account, and came to nothing. */
export interface FailedAttempt {
  readonly accountId: string;
  /** A sign-in, or what takes more than the session that somebody has. */
  readonly action: 'account.sign_in_failed' | 'account.proof_failed';
  /** What was shown that was not good, or not looked at any more. */
  readonly reason: 'wrong_password' | 'too_many_passwords' | 'wrong_code' | 'too_many_codes';
  readonly origin: Origin;
}

/** Writes failed attempts to the audit log, behind the scenes. */
export interface FailedAttempts {
  /** Returns at once: what is done for an answer must not tell by its time whether there is an account. */
  record(failed: FailedAttempt): void;
  /** Writes what waits; resolves when nothing does. */
  flush(): Promise<void>;
}

/**
 * Entries an hour of each action and reason for an account: whoever guesses a thousand passwords must not fill the table, nor keep from it that somebody has
 * the right one and guesses codes.
 */
const ENTRIES_PER_HOUR = 20;

/** How long they wait, so that the next answers do not tell by their time what the one before was about either, in milliseconds. */
const DELAY_MS = 5_000;

/** Most that wait in one process; more are passed over, and are too many of one account long before. */
const WAITING_MAX = 1_000;

interface Waiting extends FailedAttempt {
  /** Time of `performance.now()`. */
  readonly failedAt: number;
}

/**
 * Writes some at a time, one after the other, so that guessing takes one connection of the pool at most.
 *
 * @param waitingMax most that wait, beside those that are being written
 */
export function createFailedAttempts(db: Kysely<IdentityDatabase>, logger: Logger, waitingMax = WAITING_MAX): FailedAttempts {
  let waiting: Waiting[] = [];
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  const writeWaiting = () => {
    const batch = waiting;
    waiting = [];
    next = undefined;
    writing = writeAll(db, batch, logger);
    return writing;
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    // While the database is slow they go on waiting, where they are bounded, and no batch waits behind another.
    next ??= writing.then(writeWaiting);
    return next;
  };
  return {
    record(failed) {
      const alike = waiting.filter((each) => isAlike(each, failed)).length;
      if (waiting.length >= waitingMax || alike >= ENTRIES_PER_HOUR) return;
      waiting.push({ ...failed, failedAt: performance.now() });
      timer ??= setTimeout(flush, DELAY_MS);
    },
    flush,
  };
}

function isAlike(a: FailedAttempt, b: FailedAttempt): boolean {
  return a.accountId === b.accountId && a.action === b.action && a.reason === b.reason;
}

async function writeAll(db: Kysely<IdentityDatabase>, batch: readonly Waiting[], logger: Logger): Promise<void> {
  if (batch.length === 0) return;
  try {
    const toDate = await readClock(db);
    for (const failed of batch) await write(db, failed, toDate(failed.failedAt));
  } catch (err) {
    // What a database that is away can't take is not waited for: the log has the requests too.
    logger.warn({ err }, 'failed attempts not written to the audit log');
  }
}

/** Tells of times of `performance.now()` when they are by the clock of the database, asked once for a batch: what takes long to be written keeps its place. */
async function readClock(db: Kysely<IdentityDatabase>): Promise<(time: number) => Date> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
  const zeroMs = (rows[0]?.now ?? new Date()).getTime() - performance.now();
  return (time) => new Date(zeroMs + time);
}

async function write(db: Kysely<IdentityDatabase>, { accountId, action, reason, origin }: Waiting, at: Date): Promise<void> {
  const event = { accountId, action, subject: { kind: 'account', id: accountId }, changes: { reason }, at } as const;
  await db.transaction().execute((tx) => recordAuditUpTo(tx, origin, event, ENTRIES_PER_HOUR));
}
