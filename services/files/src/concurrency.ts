import type { DomainError } from '@latchkey/kit/errors/errors';
import { ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';

/** Share of a concurrency limit for one network or one file, so that it can't block others. */
const SHARE = 0.25;

export const createShare = (max: number, atLeast = 1) => new ConcurrencyLimit(Math.max(atLeast, Math.floor(max * SHARE)));

type Bound = readonly [limit: ConcurrencyLimit, key: string, error: () => DomainError];

/** Acquires every limit; returns their release. Throws the error of the first that is reached. */
export function acquireAll(...bounds: readonly Bound[]): () => void {
  const reached = bounds.find(([limit, key]) => limit.isReached(key));
  if (reached) throw reached[2]();
  const releases = bounds.map(([limit, key]) => limit.acquire(key));
  return () => {
    for (const release of releases) release?.();
  };
}
