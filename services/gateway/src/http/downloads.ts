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

/** Serves download URLs. The files service writes the responses, errors included. */
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

  /** The client has read everything that the server sent. */
  catchUp(): void {
    this.#behindMs = Math.min(this.#behindMs, 0);
  }
}

/** Closes the connection of a slow reader, which holds memory and a concurrent download. */
function closeSlowReader(res: ServerResponse, socket: Socket, onSlow: () => void): void {
  const pace = new ReadingPace();
  let before = bytesTaken(socket);
  const timer = setInterval(() => {
    const taken = bytesTaken(socket);
    const bytes = taken - before;
    before = taken;
    if (res.writableLength === 0) pace.catchUp();
    else if (pace.isTooSlow(bytes, CHECK_INTERVAL_MS)) {
      onSlow();
      // A plain close would leave megabytes in the kernel's buffers for minutes.
      socket.resetAndDestroy();
    }
  }, CHECK_INTERVAL_MS);
  res.once('close', () => clearInterval(timer));
}

/** Bytes that the kernel took from this process: it takes more only as the client reads. */
function bytesTaken(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}
