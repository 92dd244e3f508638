import { setTimeout as delay } from 'node:timers/promises';
import { LatchkeyError } from '@latchkey/client';

/** The limit of uploads lets one more through within a minute. */
const WAIT_SECONDS_MAX = 120;
const TRIES_MAX = 10;

/** Runs a call, again after each wait that a rate limit asks for. */
export type RateLimitRetry = <T>(call: () => Promise<T>) => Promise<T>;

/** For longer limits than those that the client waits for by itself. */
export function createRateLimitRetry(note: (line: string) => void, signal?: AbortSignal): RateLimitRetry {
  return async (call) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await call();
      } catch (err) {
        const seconds = err instanceof LatchkeyError && err.status === 429 ? err.retryAfterSeconds : undefined;
        if (seconds === undefined || seconds > WAIT_SECONDS_MAX || tries === TRIES_MAX) throw err;
        note(`waits ${seconds} s: the server limits requests`);
        await delay(seconds * 1_000, undefined, { signal });
      }
    }
  };
}
