import type { DomainError } from '@latchkey/kit/errors/errors';

/** Share of a concurrency limit for one network or one file, so that it can't block others. */
const SHARE = 0.25;

export function shareOf(max: number, atLeast = 1): number {
  return Math.max(atLeast, Math.floor(max * SHARE));
}

/** Limits the concurrent use of each key, such as an account or a network. */
export class ConcurrencyLimit {
  readonly max: number;
  readonly #counts = new Map<string, number>();

  constructor(max: number) {
    this.max = max;
  }

  count(key = ''): number {
    return this.#counts.get(key) ?? 0;
  }

  /** Counts a use. Returns its end, or undefined if the limit is reached. */
  acquire(key = ''): (() => void) | undefined {
    if (this.count(key) >= this.max) return undefined;
    this.#counts.set(key, this.count(key) + 1);
    return () => {
      const count = this.count(key) - 1;
      if (count > 0) this.#counts.set(key, count);
      else this.#counts.delete(key);
    };
  }
}

export type Bound = readonly [limit: ConcurrencyLimit, key: string, error: () => DomainError];

/** Acquires every limit; returns their release. Throws the error of the first that is reached. */
export function acquireAll(...bounds: readonly Bound[]): () => void {
  const releases: Array<() => void> = [];
  const release = () => {
    for (const one of releases) one();
  };
  for (const [limit, key, error] of bounds) {
    const acquired = limit.acquire(key);
    if (!acquired) {
      release();
      throw error();
    }
    releases.push(acquired);
  }
  return release;
}

/** Metadata of a concurrency limit's error, from which the headers of a 429 are made. */
export function limitMetadata(
  policy: string,
  { max }: { readonly max: number },
  { windowMs, retryMs = windowMs }: { readonly windowMs: number; readonly retryMs?: number },
): Record<string, string> {
  const toSeconds = (ms: number) => String(Math.ceil(ms / 1_000));
  const times = { windowSeconds: toSeconds(windowMs), retryAfterSeconds: toSeconds(retryMs) };
  return { policy, limit: String(max), remaining: '0', ...times };
}
