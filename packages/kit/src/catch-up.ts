/** What to catch up with. */
export interface CatchUpOptions<T> {
  readonly clock: () => Date;
  /** How far the first look goes back, in milliseconds; Infinity for all the way. */
  readonly firstLookMs: number;
  /** How far a look goes back behind the one before, in milliseconds: for clocks that differ, and for what came late. */
  readonly overlapMs: number;
  /** Finds what happened at a time or later and is still to be done. */
  readonly find: (since: Date, signal: AbortSignal) => AsyncIterable<T>;
  /** Does it. Another may be doing it as well. */
  readonly take: (found: T, signal: AbortSignal) => Promise<void>;
}

/** Failures that are told of after a look; there may be as many as there are things to do. */
const FAILURES_MAX = 10;

/**
 * Looks for what somebody should have been told of and may not have been. Each look begins where the last one began that came through with
 * everything, less the overlap; it is remembered in this process alone. One thing that fails does not keep the others.
 *
 * @returns one look, until it is through or the signal aborts; it rejects when something could not be found, or with an AggregateError when
 *   something could not be done
 */
export function createCatchUp<T>(options: CatchUpOptions<T>): (signal: AbortSignal) => Promise<void> {
  const { clock, firstLookMs, overlapMs, find, take } = options;
  let lookedAt: number | undefined;
  return async (signal) => {
    const now = clock().getTime();
    const since = lookedAt === undefined ? now - firstLookMs : lookedAt - overlapMs;
    const failures: unknown[] = [];
    for await (const found of find(new Date(Math.max(0, since)), signal)) {
      if (signal.aborted) return;
      await take(found, signal).catch((err: unknown) => {
        if (failures.length < FAILURES_MAX) failures.push(err);
      });
    }
    // What was told to end is not through.
    if (signal.aborted) return;
    if (failures.length > 0) throw new AggregateError(failures, 'Not all that was found could be done');
    lookedAt = now;
  };
}
