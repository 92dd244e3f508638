import { LRUCache } from 'lru-cache';
import { type Limit, type Standing, standing } from './limit.ts';

interface Counter {
  count: number;
  readonly endsAt: number;
}

/** Most counters held; past that the ones unused for longest go. */
const COUNTERS_MAX = 100_000;

/** Counters of this process, for as long as Redis can't be asked (promises R9). */
export class LocalCounters {
  readonly #counters = new LRUCache<string, Counter>({ max: COUNTERS_MAX });

  hit(limit: Limit, key: string): Standing {
    const now = performance.now();
    let counter = this.#counters.get(key);
    if (!counter || counter.endsAt <= now) {
      counter = { count: 0, endsAt: now + limit.windowMs };
      this.#counters.set(key, counter);
    }
    counter.count += 1;
    return standing(limit, counter.count, counter.endsAt - now);
  }

  refund(key: string): void {
    const counter = this.#counters.get(key);
    if (counter && counter.count > 0) counter.count -= 1;
  }
}
