import type { Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { isTransferring, unreadBytes } from '@latchkey/kit/http/connections';
import type { Logger } from '@latchkey/kit/log/logger';

/** Bytes per second below which a reader is slow. */
const RATE_MIN = 16 * 1024;
/** Longest pause of a slow reader, in milliseconds. */
const SLOW_MS_MAX = 10_000;
/**
 * Longest time that bytes read after a pause count for, in milliseconds. The kernel reports what a
 * client reads in bursts, of up to 1.5 MiB on loopback: each stands for the time since the last.
 */
const CREDIT_MS_MAX = 20_000;
const CHECK_INTERVAL_MS = 1_000;

/** Measures how long a reader has been below the lowest rate. */
export class ReadingPace {
  #behindMs = 0;

  /**
   * Counts the bytes that the client read in an interval during which it could have read more.
   *
   * @returns whether it has been slow for too long
   */
  isTooSlow(bytes: number, intervalMs: number): boolean {
    // Only bytes after a pause count for it: the kernel buffers the first in any case.
    const least = this.#behindMs > 0 ? -CREDIT_MS_MAX : this.#behindMs;
    this.#behindMs = Math.max(least, this.#behindMs + intervalMs - (bytes * 1_000) / RATE_MIN);
    return this.#behindMs >= SLOW_MS_MAX;
  }
}

/** Bytes of responses other than files that any client may leave unread, as on a slow network. */
const UNREAD_BYTES_FREE = 128 * 1024;

/** Closes the connections of slow readers, whose responses wait in memory. */
export function closeSlowReaders(server: Server, open: ReadonlySet<Duplex>, logger: Logger): void {
  const readers = new WeakMap<Duplex, { readonly pace: ReadingPace; taken: number }>();
  const check = (socket: Duplex) => {
    if (!(socket instanceof Socket)) return;
    const reader = readers.get(socket);
    const taken = bytesTaken(socket);
    if (unreadBytes(socket) <= (isTransferring(socket) ? 0 : UNREAD_BYTES_FREE)) readers.delete(socket);
    else if (!reader) readers.set(socket, { pace: new ReadingPace(), taken });
    else if (reader.pace.isTooSlow(taken - reader.taken, CHECK_INTERVAL_MS)) {
      logger.info({ unreadBytes: unreadBytes(socket) }, 'connection closed: the client reads too slowly');
      // A plain close would leave megabytes in the kernel's buffers for minutes.
      socket.resetAndDestroy();
    } else reader.taken = taken;
  };
  const timer = setInterval(() => open.forEach(check), CHECK_INTERVAL_MS);
  server.once('close', () => clearInterval(timer));
}

/** Bytes that the kernel took from this process: it takes more only as the client reads. */
function bytesTaken(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}
