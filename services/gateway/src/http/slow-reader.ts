import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Bytes per second below which a reader is slow. */
const RATE_MIN = 16 * 1024;
/** How long a reader may be slow, in milliseconds. */
const SLOW_MS_MAX = 10_000;
/**
 * Longest time that bytes taken after a pause count for, in milliseconds. The system reports what a client takes in bursts, of up to 1.5 MiB
 * on loopback: one burst is the work of all the time since the last.
 */
const CREDIT_MS_MAX = 20_000;
const CHECK_INTERVAL_MS = 1_000;

/** Measures how long a reader has been below the lowest rate. */
export class ReadingPace {
  #behindMs = 0;

  /**
   * Counts the bytes that the client took in an interval during which it could have taken more.
   *
   * @returns whether it has been too slow for too long
   */
  isTooSlow(bytes: number, intervalMs: number): boolean {
    // Only what comes after a pause counts for it: the first bytes go to buffers of the system, whether or not the client reads.
    const least = this.#behindMs > 0 ? -CREDIT_MS_MAX : this.#behindMs;
    this.#behindMs = Math.max(least, this.#behindMs + intervalMs - (bytes * 1_000) / RATE_MIN);
    return this.#behindMs >= SLOW_MS_MAX;
  }

  /** Notes that the client has taken all that there was: the server is the slower one. */
  catchUp(): void {
    this.#behindMs = Math.min(this.#behindMs, 0);
  }
}

/**
 * Closes the connection of a client that takes a response too slowly: an unread response holds memory, a descriptor and a part of
 * `DOWNLOADS_AT_ONCE`. Watches until the response is closed.
 *
 * @param onSlow called before the connection is closed
 */
export function closeSlowReader(res: ServerResponse, socket: Socket, onSlow: () => void): void {
  const pace = new ReadingPace();
  let before = bytesTaken(socket);
  const timer = setInterval(() => {
    const taken = bytesTaken(socket);
    const bytes = taken - before;
    before = taken;
    if (res.writableLength === 0) pace.catchUp();
    else if (pace.isTooSlow(bytes, CHECK_INTERVAL_MS)) {
      onSlow();
      // A mere close would leave megabytes in the system's buffers for minutes.
      socket.resetAndDestroy();
    }
  }, CHECK_INTERVAL_MS);
  res.once('close', () => clearInterval(timer));
}

/** Bytes that the system has taken from this process: it takes more only as the client reads. */
function bytesTaken(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}
