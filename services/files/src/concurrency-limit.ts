/** Share of a concurrency limit for one network or one file, so that it can't block others. */
const SHARE = 0.25;

/** The share of a concurrency limit that one network or one file may use. */
export function shareOf(max: number, atLeast = 1): number {
  return Math.max(atLeast, Math.floor(max * SHARE));
}

/** Limits what each key, as an account or a network, has under way concurrently. */
export class ConcurrencyLimit {
  readonly max: number;
  readonly #counts = new Map<string, number>();

  constructor(max: number) {
    this.max = max;
  }

  isReached(key: string): boolean {
    return (this.#counts.get(key) ?? 0) >= this.max;
  }

  add(key: string, change: 1 | -1): void {
    const count = (this.#counts.get(key) ?? 0) + change;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
  }
}
