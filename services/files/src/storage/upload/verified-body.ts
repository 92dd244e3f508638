import { createHash } from 'node:crypto';
import { on } from 'node:events';
import { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { DomainError } from '@latchkey/kit/errors/errors';
import { releaseBytes } from '@latchkey/kit/http/write-chunk';
import { bytesReceived } from '../../files-metrics.ts';
import { errors } from '../../proto-errors.ts';

/** Bytes from which the media type is sniffed; as many as the library asks for. */
export const HEAD_BYTES = 4_100;

interface BodyExpectation {
  /** Sizes that a body must not exceed, and the errors that it fails with then. */
  readonly limits: ReadonlyArray<readonly [byteSizeMax: number, error: () => DomainError]>;
  /** Size and SHA-256 where the sender announced them (Content-Length, Content-Digest). */
  readonly byteSize?: number | null;
  readonly checksum?: Buffer | null;
}

export type VerifiedBody = ReturnType<typeof verifyBody>;

/**
 * The body of an upload, counted, hashed and checked against its limits while the store reads it.
 * It ends properly only if all of it came and matches what was announced. Its source stays open,
 * since the sender still gets a response.
 *
 * @param signal fails the body immediately, even while it hangs, with the signal's reason
 */
export function verifyBody(source: Readable, expected: BodyExpectation, signal: AbortSignal) {
  const head: Uint8Array[] = [];
  return {
    byteSize: 0,
    /** SHA-256 of the whole, once it ended properly. */
    checksum: Buffer.alloc(0),
    error: undefined as unknown,
    get head(): Buffer {
      return Buffer.concat(head).subarray(0, HEAD_BYTES);
    },
    async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
      const { limits, byteSize, checksum } = expected;
      const sha256 = createHash('sha256');
      try {
        for await (const chunk of readChunks(source, signal)) {
          // A copy, since the memory of a chunk may be reused.
          if (this.byteSize < HEAD_BYTES) head.push(Uint8Array.prototype.slice.call(chunk, 0, HEAD_BYTES));
          this.byteSize += chunk.byteLength;
          for (const [byteSizeMax, error] of limits) if (this.byteSize > byteSizeMax) throw error();
          sha256.update(chunk);
          yield chunk;
        }
        if (this.byteSize === 0) throw errors.file_empty();
        if ((byteSize ?? this.byteSize) !== this.byteSize) throw errors.upload_interrupted();
        this.checksum = sha256.digest();
        if (checksum?.equals(this.checksum) === false) throw errors.checksum_mismatch();
      } catch (err) {
        this.error = err;
        throw err;
      }
    },
  };
}

/** A request says in `complete` whether all of its body came. */
type Body = Readable & { readonly complete?: boolean };

/**
 * The chunks of a stream until its proper end. A stream's own iterator would close the stream, and
 * ignore the signal. The memory of a request's chunk is released when the next one is read. Throws
 * the signal's reason; `upload_interrupted` where the stream broke off.
 */
export async function* readChunks(body: Body, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const options = { signal, close: ['end', 'close'], highWaterMark: 1, lowWaterMark: 1 };
  try {
    // A stream that ended or broke off before emits nothing more.
    const chunks = body.readableEnded || body.destroyed ? [] : on(body, 'data', options);
    for await (const [chunk] of chunks as AsyncIterable<[Uint8Array]>) {
      bytesReceived.add(chunk.byteLength);
      yield chunk;
      // Chunks of other streams may still be in use.
      if (body instanceof IncomingMessage) releaseBytes(chunk);
    }
  } catch {
    signal.throwIfAborted();
    throw errors.upload_interrupted();
  } finally {
    body.pause();
  }
  if (!body.readableEnded || body.complete === false) throw errors.upload_interrupted();
}
