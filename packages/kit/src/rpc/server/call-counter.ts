import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectError } from '@connectrpc/connect';
import { commonErrors, toConnectError } from '../../errors/errors.ts';
import { overloadRejections } from '../observe.ts';

export type CallCounter = ReturnType<typeof createCallCounter>;

/** Limits the concurrent calls, and waits for the last one. */
export function createCallCounter(max: number) {
  let underWay = 0;
  let changes = 0;
  return {
    /** Counts a call, until {@link leave}. Returns an error instead if too many are under way. */
    enter(): ConnectError | undefined {
      if (underWay >= max) {
        overloadRejections.add(1);
        return toConnectError(commonErrors.too_many_calls());
      }
      underWay += 1;
      changes += 1;
      return undefined;
    },

    leave(): void {
      underWay -= 1;
      changes += 1;
    },

    /** Resolves once no call has been under way for a time, in milliseconds. */
    async quiet(ms: number): Promise<void> {
      for (let before = -1; underWay > 0 || before !== changes; ) {
        before = changes;
        await delay(ms);
      }
    },
  };
}
