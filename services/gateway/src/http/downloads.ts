import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '@latchkey/kit/http/client-ip';
import { runTransfer } from '@latchkey/kit/http/connections';
import type { Logger } from '@latchkey/kit/log/logger';
import type { FastifyInstance } from 'fastify';
import type { FilesDataPath } from '../files-data-path.ts';
import { currentRequest } from '../request-context.ts';

/** Path of the URLs of files on disk. */
export const DOWNLOADS_URL = '/downloads/:token';

/** Serves the files' own URLs to whoever has one (decisions 11). The files service writes the responses, errors included. */
export function registerDownloads(app: FastifyInstance, files: FilesDataPath, logger: Logger): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: DOWNLOADS_URL,
    schema: { hide: true } as object,
    handler: async ({ raw: req, id }, reply) => {
      for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value);
      closeSlowReader(reply.raw, req.socket, () =>
        logger.info({ requestId: id }, 'download closed: the client reads too slowly'),
      );
      const network = networkOf(currentRequest()?.clientIp ?? '');
      await runTransfer(req.socket, () => files.download(req, reply.raw, id, network));
      reply.hijack();
    },
  });
}

/** Bytes per second below which a reader is slow. */
const RATE_MIN = 16 * 1024;
/** How long a reader may be slow, in milliseconds. */
const SLOW_MS_MAX = 10_000;
/**
 * Longest time that bytes read after a pause count for, in milliseconds. The system reports what a client reads in bursts, of up to
 * 1.5 MiB on loopback: one burst is the work of all the time since the last.
 */
const CREDIT_MS_MAX = 20_000;
const CHECK_INTERVAL_MS = 1_000;

/** Measures how long a reader has been below the lowest rate. */
export class ReadingPace {
  #behindMs = 0;

  /**
   * Counts the bytes that the client read in an interval during which it could have read more.
   *
   * @returns whether it has been too slow for too long
   */
  isTooSlow(bytes: number, intervalMs: number): boolean {
    // Only bytes after a pause count for it: the first go to buffers of the system, whether or not the client reads.
    const least = this.#behindMs > 0 ? -CREDIT_MS_MAX : this.#behindMs;
    this.#behindMs = Math.max(least, this.#behindMs + intervalMs - (bytes * 1_000) / RATE_MIN);
    return this.#behindMs >= SLOW_MS_MAX;
  }

  /** The client has read all that there was: the server is slower. */
  catchUp(): void {
    this.#behindMs = Math.min(this.#behindMs, 0);
  }
}

/** Closes the connection of a slow reader: an unread response holds memory, a descriptor and one of `DOWNLOADS_AT_ONCE`. */
function closeSlowReader(res: ServerResponse, socket: Socket, onSlow: () => void): void {
  const pace = new ReadingPace();
  let before = bytesRead(socket);
  const timer = setInterval(() => {
    const read = bytesRead(socket);
    const bytes = read - before;
    before = read;
    if (res.writableLength === 0) pace.catchUp();
    else if (pace.isTooSlow(bytes, CHECK_INTERVAL_MS)) {
      onSlow();
      // A plain close would leave megabytes in the system's buffers for minutes.
      socket.resetAndDestroy();
    }
  }, CHECK_INTERVAL_MS);
  res.once('close', () => clearInterval(timer));
}

/** Bytes that the system took from this process: it takes more only as the client reads. */
function bytesRead(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}
