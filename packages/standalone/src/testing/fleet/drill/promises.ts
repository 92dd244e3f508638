import type { Fault } from './faults.ts';
import { isLost, type Sample, succeeded, tellFailures } from './samples.ts';

/** Errors come within 5 s where PostgreSQL is gone (R9), on a machine with other work to do. */
const ERROR_MS_MAX = 5_500;

/** And whatever was broken, all goes well so soon after it is whole again. */
const RECOVERY_MS_MAX = 10_000;

/** What had been promised of answers, and did not hold (promises R9, R11). */
export function findBreaches(
  fault: Fault,
  result: { readonly samples: readonly Sample[]; readonly unhealthyMs: number },
): string[] {
  const failed = result.samples.filter((sample) => !succeeded(sample));
  const lost = failed.filter(isLost);
  const breaches: string[] = [];
  if (fault.service !== 'gateway' && lost.length > 0) breaches.push(`connections were lost: ${tellFailures(lost)}`);
  if (fault.name.startsWith('PostgreSQL')) {
    const late = failed.filter(({ startedAt, endedAt }) => endedAt - startedAt > ERROR_MS_MAX);
    if (late.length > 0) breaches.push(`errors came after more than ${ERROR_MS_MAX} ms: ${tellFailures(late)}`);
  }
  if (fault.name.startsWith('Redis')) {
    // An image is decoded by a worker, whom a queue tells.
    const others = failed.filter(({ kind }) => kind !== 'avatar');
    if (others.length > 0) breaches.push(`reads and writes do not go on: ${tellFailures(others)}`);
  }
  if (result.unhealthyMs > RECOVERY_MS_MAX) breaches.push(`it took ${Math.round(result.unhealthyMs)} ms until all went well`);
  return breaches;
}
