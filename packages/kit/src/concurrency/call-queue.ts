import pLimit, { type LimitFunction } from 'p-limit';
import { commonErrors, type DomainError } from '../errors/errors.ts';

export interface CallQueueLimits {
  readonly concurrency: number;
  readonly concurrencyPerKey: number;
  /** Calls that wait or run. */
  readonly size: number;
  readonly sizePerKey: number;
  readonly waitMs: number;
}

/** The error of calls beyond the size of a queue: their number is the callers' own load. */
export function queueFull({ sizePerKey, waitMs }: Pick<CallQueueLimits, 'sizePerKey' | 'waitMs'>): DomainError {
  return commonErrors.queue_full({ policy: 'waiting-requests', limit: sizePerKey, windowMs: waitMs, retryMs: 0 });
}

/** Limits concurrency per key, then overall, so that the calls of one key delay only themselves. */
export class CallQueue {
  readonly #limits: CallQueueLimits;
  readonly #createFull: () => DomainError;
  readonly #createLate: () => DomainError;
  readonly #limitAll: LimitFunction;
  readonly #keys = new Map<string, { readonly limit: LimitFunction; size: number }>();
  #size = 0;

  /**
   * @param createError the error of a rejected call. Unless given, `queue_full` while the queue is
   *   full, and `dependency_unavailable` after too long a wait, as the callee is slow.
   */
  constructor(limits: CallQueueLimits, createError?: () => DomainError) {
    this.#limits = limits;
    this.#createFull = createError ?? (() => queueFull(limits));
    this.#createLate = createError ?? commonErrors.dependency_unavailable;
    this.#limitAll = pLimit(limits.concurrency);
  }

  /** Throws the queue's error if it is full for a key. */
  check(key: string): void {
    const { size, sizePerKey } = this.#limits;
    if (this.#size >= size || (this.#keys.get(key)?.size ?? 0) >= sizePerKey) throw this.#createFull();
  }

  /**
   * Runs a call in turn, after {@link check}; rejects it after too long a wait.
   *
   * @param deadline latest start where the caller gives up earlier, as `performance.now()` counts
   */
  async run<T>(key: string, call: () => Promise<T>, deadline = Number.POSITIVE_INFINITY): Promise<T> {
    const lateAt = Math.min(deadline, performance.now() + this.#limits.waitMs);
    const own = this.#keys.get(key) ?? { limit: pLimit(this.#limits.concurrencyPerKey), size: 0 };
    this.#keys.set(key, own);
    own.size += 1;
    this.#size += 1;
    const callInTime = () => {
      if (performance.now() >= lateAt) throw this.#createLate();
      return call();
    };
    try {
      return await own.limit(() => this.#limitAll(callInTime));
    } finally {
      own.size -= 1;
      this.#size -= 1;
      if (own.size === 0) this.#keys.delete(key);
    }
  }
}
