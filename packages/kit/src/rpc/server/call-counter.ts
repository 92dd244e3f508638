import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectError } from '@connectrpc/connect';
import { commonErrors, toConnectError } from '../../errors/errors.ts';
import { overloadRejections } from '../observe.ts';

/** Counts the calls under way, to bound them and to wait for the last one. */
export class CallCounter {
  readonly #max: number;
  #underWay = 0;
  #entered = 0;
  #onIdle: (() => void) | undefined;

  constructor(max = Number.POSITIVE_INFINITY) {
    this.#max = max;
  }

  /**
   * Counts a call, until {@link leave}.
   *
   * @returns why there is no room for it, if there is none
   */
  enter(): ConnectError | undefined {
    if (this.#underWay >= this.#max) {
      overloadRejections.add(1);
      return toConnectError(commonErrors.too_many_calls());
    }
    this.#underWay += 1;
    this.#entered += 1;
    return undefined;
  }

  leave(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#onIdle?.();
  }

  /** Resolves once no call is under way. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      if (this.#underWay === 0) resolve();
    });
  }

  /** Resolves once no call has been under way for a time, in milliseconds. */
  async quiet(ms: number): Promise<void> {
    for (let before = -1; before !== this.#entered; ) {
      await this.idle();
      before = this.#entered;
      await delay(ms);
    }
  }
}
