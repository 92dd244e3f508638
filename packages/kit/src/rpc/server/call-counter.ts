import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectError } from '@connectrpc/connect';
import { commonErrors, toConnectError } from '../../errors/errors.ts';
import { overloadRejections } from '../observe.ts';

/** Limits the concurrent calls, and waits for the last one. */
export class CallCounter {
  readonly #max: number;
  #underWay = 0;
  #changes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Counts a call, until {@link leave}. Returns an error instead if too many are under way. */
  enter(): ConnectError | undefined {
    if (this.#underWay >= this.#max) {
      overloadRejections.add(1);
      return toConnectError(commonErrors.too_many_calls());
    }
    this.#underWay += 1;
    this.#changes += 1;
    return undefined;
  }

  leave(): void {
    this.#underWay -= 1;
    this.#changes += 1;
  }

  /** Resolves once no call has been under way for a time, in milliseconds. */
  async quiet(ms: number): Promise<void> {
    for (let before = -1; this.#underWay > 0 || before !== this.#changes; ) {
      before = this.#changes;
      await delay(ms);
    }
  }
}
