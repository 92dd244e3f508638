import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { bytesSent } from '../files-metrics.ts';

/** Most bytes that are given to the connection at once, so that a slow reader's progress is seen. */
const PIECE_BYTES_MAX = 64 * 1024;

/** What is sent, and how long it may stand still. */
export interface BodyOptions {
  /** Bytes that the headers announced. */
  readonly byteSize: number;
  readonly stallTimeoutMs: number;
}

/**
 * Sends a body as fast as the client reads it, whose headers are written. Where the bytes end early, are too many, fail, or nothing moves for
 * too long, the connection is destroyed, so that the client sees a body that was cut short. The source is closed in any case.
 *
 * @throws what went wrong, a client that went away included
 */
export async function sendBody(res: ServerResponse, source: Readable, options: BodyOptions): Promise<void> {
  const { byteSize, stallTimeoutMs } = options;
  const stalled = new AbortController();
  const timer = setTimeout(() => stalled.abort(new Error(`Nothing moved for ${stallTimeoutMs} ms`)), stallTimeoutMs);
  const pieces = async function* (chunks: AsyncIterable<Buffer>) {
    let left = byteSize;
    for await (const chunk of chunks) {
      left -= chunk.byteLength;
      if (left < 0) throw new Error(`The object has more than ${byteSize} bytes`);
      for (let start = 0; start < chunk.byteLength; start += PIECE_BYTES_MAX) {
        timer.refresh();
        const piece = chunk.subarray(start, start + PIECE_BYTES_MAX);
        bytesSent.add(piece.byteLength);
        yield piece;
      }
    }
    if (left > 0) throw new Error(`The object lacks ${left} of ${byteSize} bytes`);
  };
  try {
    await pipeline(source, pieces, res, { signal: stalled.signal });
  } catch (err) {
    throw stalled.signal.aborted ? stalled.signal.reason : err;
  } finally {
    clearTimeout(timer);
    source.destroy();
  }
}
