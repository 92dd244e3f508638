import pLimit, { type LimitFunction } from 'p-limit';
import { commonErrors, type DomainError } from './errors.ts';

/** How many calls a queue takes, in all and of one key. */
export interface CallQueueLimits {
  readonly underWay: number;
  readonly underWayOfKey: number;
  /** Calls that wait or are under way. */
  readonly size: number;
  readonly sizeOfKey: number;
  /** Longest wait for a call's turn, in milliseconds. */
  readonly waitMs: number;
}

/** The calls of one key. */
interface Line {
  readonly turn: LimitFunction;
  size: number;
}

/**
 * Limits concurrency per key, then overall, so that the calls of one key delay only themselves.
 */
export class CallQueue {
  readonly #limits: CallQueueLimits;
  readonly #createError: () => DomainError;
  readonly #turn: LimitFunction;
  readonly #lines = new Map<string, Line>();
  #size = 0;

  /** @param createError the error of a call that is not made; `dependency_unavailable` unless given */
  constructor(limits: CallQueueLimits, createError: () => DomainError = commonErrors.dependency_unavailable) {
    this.#limits = limits;
    this.#createError = createError;
    this.#turn = pLimit(limits.underWay);
  }

  /** Throws the queue's error where there is no room for another call of a key. */
  check(key: string): void {
    const { size, sizeOfKey } = this.#limits;
    if (this.#size >= size || (this.#lines.get(key)?.size ?? 0) >= sizeOfKey) throw this.#createError();
  }

  /** Makes a call when it is its turn; rejects with the queue's error where that comes too late. The caller checks for room. */
  async run<T>(key: string, call: () => Promise<T>): Promise<T> {
    const lateAt = performance.now() + this.#limits.waitMs;
    const line = this.#lines.get(key) ?? { turn: pLimit(this.#limits.underWayOfKey), size: 0 };
    this.#lines.set(key, line);
    line.size += 1;
    this.#size += 1;
    const callUnlessLate = () => {
      if (performance.now() >= lateAt) throw this.#createError();
      return call();
    };
    try {
      return await line.turn(() => this.#turn(callUnlessLate));
    } finally {
      line.size -= 1;
      this.#size -= 1;
      if (line.size === 0) this.#lines.delete(key);
    }
  }
}
