import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectError } from '@connectrpc/connect';
import { commonErrors, toConnectError } from '../errors.ts';
import { overloadRefusals } from './rpc-metrics.ts';

/** Most calls under way at once where nothing else is set. */
export const CALLS_AT_ONCE = 1_000;

/** Knows how many calls are under way, so that there are never more than a process can bear, and that it can stop when the last has ended. */
export class CallCounter {
  readonly #max: number;
  #underWay = 0;
  #entered = 0;
  #onIdle: (() => void) | undefined;

  /** @param max most calls at once; as many as come unless given */
  constructor(max = Number.POSITIVE_INFINITY) {
    this.#max = max;
  }

  /**
   * Counts a call that begins.
   *
   * @throws ConnectError `unavailable` where there are too many: another process may have room
   */
  enter(): void {
    if (this.#underWay >= this.#max) throw overloaded();
    this.#underWay += 1;
    this.#entered += 1;
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

  /** Resolves once no call has been under way for so long, in milliseconds. */
  async quiet(ms: number): Promise<void> {
    for (let before = -1; before !== this.#entered; ) {
      await this.idle();
      before = this.#entered;
      await delay(ms);
    }
  }
}

function overloaded(): ConnectError {
  overloadRefusals.add(1);
  return toConnectError(commonErrors.too_many_calls());
}
