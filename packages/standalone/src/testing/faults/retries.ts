import { setTimeout as pause } from 'node:timers/promises';
import type { Unanswered } from './account.ts';
import { describeOutcome, isLost, type Outcome, Violation } from './outcome.ts';
import { sendUpload } from './upload-request.ts';
import type { World } from './world.ts';

/** Longest time that a retry may be put off, in milliseconds: the lease of a process that was killed, and the wait that a client is told. */
const PUT_OFF_MS_MAX = 10_000;

/** How long a client tries again that is answered with an error of the server, in milliseconds (promises R9). */
const RECOVERY_MS_MAX = 10_000;

/**
 * Sends an upload again as its client would: the answer is 200, or 409 `file_name_taken` where the first one had got through; and a client that is
 * told to wait is let in soon (promises R3).
 *
 * @throws {Violation} on any other answer
 */
export async function retry({ subject, counts, journal }: World, { account, entry, bytes }: Unanswered): Promise<void> {
  const fileName = entry.names[0] ?? '';
  const upload = { authorization: account.authorization, applicationId: entry.applicationId, fileName, bytes, chunked: false };
  const startedAt = performance.now();
  counts.retried += 1;
  for (;;) {
    const outcome = await sendUpload(subject.port, upload);
    journal.note(`${account.name} retry ${fileName}: ${describeOutcome(outcome)}`);
    if (!isLost(outcome) && outcome.status === 200) {
      Object.assign(entry, { state: 'there', id: outcome.data.id });
      return;
    }
    // It got through the first time, so that its row must be found.
    if (!isLost(outcome) && outcome.code === 'file_name_taken' && entry.state === 'in doubt') {
      counts.foundThere += 1;
      entry.state = 'there';
      return;
    }
    if (!isLost(outcome) && outcome.code === 'limit_exceeded') return;
    const elapsedMs = performance.now() - startedAt;
    if (!mayWait(outcome, elapsedMs)) {
      throw new Violation(
        `A retry of ${fileName} of ${account.name} was answered ${describeOutcome(outcome)} after ${elapsedMs} ms`,
      );
    }
    await pause(isLost(outcome) ? 100 : Number(outcome.headers.get('retry-after')) * 1_000);
  }
}

function mayWait(outcome: Outcome, elapsedMs: number): boolean {
  if (isLost(outcome)) return false;
  if (outcome.code === 'rate_limit_reached') return elapsedMs < PUT_OFF_MS_MAX;
  return outcome.status === 503 && elapsedMs < RECOVERY_MS_MAX;
}
