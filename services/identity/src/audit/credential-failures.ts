import type { Acting, Origin } from '@latchkey/audit/actor';
import { recordAuditUpTo } from '@latchkey/audit/record';
import { DomainError } from '@latchkey/kit/errors/errors';
import type { Logger } from '@latchkey/kit/log/logger';
import pLimit from 'p-limit';
import type { Db } from '../db/schema.ts';
import { actionOn } from './actions.ts';

export interface CredentialFailure {
  readonly accountId: string;
  readonly action: 'account.sign_in_failed' | 'account.proof_failed';
  readonly reason: 'wrong_password' | 'too_many_passwords' | 'wrong_code' | 'too_many_codes';
  readonly origin: Origin;
}

/** Per account, action and reason: a password guesser must not fill the audit log. */
const ENTRIES_PER_HOUR = 20;
/** Late enough that writing one failure does not slow the next responses measurably. */
const DELAY_MS = 5_000;
const QUEUE_MAX = 1_000;

type Queued = CredentialFailure & { readonly at: Date };

/** Writes credential failures to the audit log in the background, over one connection at most. */
export function createCredentialFailureLog(db: Db, logger: Logger, queueMax = QUEUE_MAX) {
  const limit = pLimit(1);
  let queue: Queued[] = [];
  let timer: NodeJS.Timeout | undefined;
  const write = async () => {
    const batch = queue;
    queue = [];
    await writeAll(db, batch).catch((err: unknown) => logger.warn({ err }, 'credential failures not written to the audit log'));
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    return limit(write);
  };
  return {
    /** Queues a failure. The response time must not show that it is written. */
    record(failure: CredentialFailure): void {
      const { accountId, action, reason } = failure;
      const alike = queue.filter((one) => one.accountId === accountId && one.action === action && one.reason === reason);
      if (queue.length >= queueMax || alike.length >= ENTRIES_PER_HOUR) return;
      queue.push({ ...failure, at: new Date() });
      timer ??= setTimeout(flush, DELAY_MS);
    },
    flush,
  };
}

async function writeAll(db: Db, batch: readonly Queued[]): Promise<void> {
  for (const { action, reason, origin, at, ...account } of batch) {
    const event = { ...actionOn(account, action, { reason }), at };
    await db.transaction().execute((tx) => recordAuditUpTo(tx, origin, event, ENTRIES_PER_HOUR));
  }
}

const FAILURE_REASONS: ReadonlyMap<string, CredentialFailure['reason']> = new Map([
  ['owner_password_wrong', 'wrong_password'],
  ['password_attempts_reached', 'too_many_passwords'],
  ['two_factor_code_invalid', 'wrong_code'],
  ['two_factor_attempts_reached', 'too_many_codes'],
]);

/** Runs `act`, and queues an audit entry where it rejects a password or a code. */
export async function recordFailures<T>(
  { credentialFailures, origin }: Acting<{ readonly credentialFailures: ReturnType<typeof createCredentialFailureLog> }>,
  attempt: Pick<CredentialFailure, 'accountId' | 'action'>,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (err) {
    const reason = err instanceof DomainError ? FAILURE_REASONS.get(err.reason) : undefined;
    if (reason) credentialFailures.record({ ...attempt, reason, origin });
    throw err;
  }
}
