const WINDOW_MS = 15 * 60_000;

/** The failures that count, oldest first. Clocks of processes may differ: future ones count. */
function recentFailures(failures: readonly Date[], now: Date): Date[] {
  const recent = failures.filter((at) => at.getTime() > now.getTime() - WINDOW_MS);
  return recent.sort((a, b) => a.getTime() - b.getTime());
}

export function withFailure(failures: readonly Date[], now: Date): Date[] {
  return [...recentFailures(failures, now), now];
}

/** Metadata of the rate-limit error while `max` failures are recent; undefined below that. */
export function failureLimitReached(failures: readonly Date[], policy: string, max: number, now: Date) {
  const blocking = recentFailures(failures, now).at(-max);
  if (!blocking) return undefined;
  const retryAfterSeconds = Math.max(1, Math.ceil((blocking.getTime() + WINDOW_MS - now.getTime()) / 1000));
  const [limit, windowSeconds] = [`${max}`, `${WINDOW_MS / 1000}`];
  return { policy, limit, windowSeconds, remaining: '0', retryAfterSeconds: `${retryAfterSeconds}` };
}
