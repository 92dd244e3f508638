import type { ReachedLimit } from '@latchkey/kit/errors/errors';

/** Window of the limits on wrong codes, and on wrong passwords within sessions. */
const WINDOW_MS = 15 * 60_000;

/** Wrong passwords within a session; the gateway limits those at sign-in. */
export const PASSWORD_FAILURES_MAX = 10;

/** Failures of the window, oldest first. Future ones count, as clocks of processes may differ. */
function recentFailures(failures: readonly Date[], now: Date): Date[] {
  const recent = failures.filter((at) => at.getTime() > now.getTime() - WINDOW_MS);
  return recent.sort((a, b) => a.getTime() - b.getTime());
}

export function withFailure(failures: readonly Date[], now: Date): Date[] {
  return [...recentFailures(failures, now), now];
}

/** The limit while `max` failures are recent; undefined below that. */
export function failureLimitReached(failures: readonly Date[], policy: string, max: number, now: Date): ReachedLimit | undefined {
  const blocking = recentFailures(failures, now).at(-max);
  const retryMs = blocking && blocking.getTime() + WINDOW_MS - now.getTime();
  return retryMs === undefined ? undefined : { policy, limit: max, windowMs: WINDOW_MS, retryMs };
}
