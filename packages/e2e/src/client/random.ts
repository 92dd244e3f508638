import { seededRandom } from '@latchkey/testkit/values/random';

/** A source of choices that a seed determines, so that a run can be repeated. */
export class SeededRandom {
  /** A whole number from 0 to `max` - 1. */
  readonly below: (max: number) => number;

  constructor(seed: number) {
    this.below = seededRandom(seed);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** True once in `times`. */
  oneIn(times: number): boolean {
    return this.below(times) === 0;
  }
}
