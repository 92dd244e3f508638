import { errors } from '../errors.ts';

const WINDOW_MS = 60_000;
/** Networks that are counted at once; past them, counting begins anew. */
const NETWORKS_MAX = 100_000;

/** Counts the refused upgrades of each network, so that none can have keys looked up for ever. */
export class Refusals {
  readonly #max: number;
  readonly #now: () => number;
  readonly #counts = new Map<string, number>();
  #windowEnd = 0;

  /** @param now any monotonic clock, in milliseconds */
  constructor(max: number, now: () => number) {
    this.#max = max;
    this.#now = now;
  }

  /** Throws `too_many_refusals` for a network that has used up its minute. */
  check(network: string): void {
    this.#turnOver();
    if ((this.#counts.get(network) ?? 0) < this.#max) return;
    const retryAfterSeconds = String(Math.max(1, Math.ceil((this.#windowEnd - this.#now()) / 1_000)));
    const limit = { policy: 'refused-upgrades', limit: String(this.#max), windowSeconds: String(WINDOW_MS / 1_000) };
    throw errors.too_many_refusals({ ...limit, remaining: '0', retryAfterSeconds });
  }

  /** Counts a refusal. */
  count(network: string): void {
    this.#turnOver();
    if (this.#counts.size >= NETWORKS_MAX) this.#counts.clear();
    this.#counts.set(network, (this.#counts.get(network) ?? 0) + 1);
  }

  #turnOver(): void {
    const now = this.#now();
    if (now < this.#windowEnd) return;
    this.#windowEnd = now + WINDOW_MS;
    this.#counts.clear();
  }
}
