/** A failure counts for so long (decisions 9). */
const WINDOW_MS = 15 * 60_000;

/** Failures that an account has for one thing within 15 minutes. */
export interface FailureLimit {
  /** What the refusal calls it. */
  readonly policy: string;
  readonly max: number;
}

/** The failures that count, oldest first. Clocks of processes may differ: one of the future counts. */
export function recentFailures(failures: readonly Date[], now: Date): Date[] {
  const recent = failures.filter((at) => at.getTime() > now.getTime() - WINDOW_MS);
  return recent.sort((a, b) => a.getTime() - b.getTime());
}

/** What to refuse every further attempt with while there are as many recent failures as there may be; undefined before that. */
export function limitReachedBy(
  failures: readonly Date[],
  { policy, max }: FailureLimit,
  now: Date,
): Readonly<Record<string, string>> | undefined {
  const blocking = recentFailures(failures, now).at(-max);
  if (!blocking) return undefined;
  const retryAfterSeconds = Math.max(1, Math.ceil((blocking.getTime() + WINDOW_MS - now.getTime()) / 1000));
  return {
    policy,
    limit: String(max),
    windowSeconds: String(WINDOW_MS / 1000),
    remaining: '0',
    retryAfterSeconds: String(retryAfterSeconds),
  };
}
