import { createHash } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { DomainError } from '@latchkey/kit/errors/errors';
import { releaseBytes } from '@latchkey/kit/http/write-chunk';
import { errors } from '../../errors.ts';
import { bytesReceived } from '../../files-metrics.ts';

/** Bytes from which the media type is sniffed; as many as the library asks for. */
const HEAD_BYTES = 4_100;

/** What a body must be. */
export interface BodyExpectation {
  /** Sizes that a body must not exceed, and the errors that it fails with then. */
  readonly limits: ReadonlyArray<readonly [byteSizeMax: number, error: () => DomainError]>;
  /** Size and SHA-256 where the sender announced them. */
  readonly byteSize?: number | undefined;
  readonly checksum?: Buffer | undefined;
}

/**
 * The body of an upload on its way to the store: counted, hashed and checked against its limits as
 * it passes. It ends properly only if all of it came and everything that was announced is true. Its
 * source stays open, since the sender still gets a response.
 */
export class UploadBody implements AsyncIterable<Uint8Array> {
  /** What has passed so far. */
  byteSize = 0;
  /** SHA-256 of the whole, once it ended properly. */
  checksum: Buffer = Buffer.alloc(0);
  /** Why it did not end properly. */
  error: unknown;
  readonly #source: Readable;
  readonly #expected: BodyExpectation;
  readonly #signal: AbortSignal;
  readonly #head: Uint8Array[] = [];

  /**
   * @param signal ends it immediately, however long the next chunk takes, with the signal's reason
   */
  constructor(source: Readable, expected: BodyExpectation, signal: AbortSignal) {
    this.#source = source;
    this.#expected = expected;
    this.#signal = signal;
  }

  /** The first bytes. */
  get head(): Buffer {
    return Buffer.concat(this.#head).subarray(0, HEAD_BYTES);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const { limits, byteSize, checksum } = this.#expected;
    const sha256 = createHash('sha256');
    try {
      for await (const chunk of readBody(this.#source, this.#signal)) {
        // A copy, since the memory of a chunk may be reused.
        if (this.byteSize < HEAD_BYTES) this.#head.push(Uint8Array.prototype.slice.call(chunk, 0, HEAD_BYTES));
        this.byteSize += chunk.byteLength;
        for (const [byteSizeMax, error] of limits) if (this.byteSize > byteSizeMax) throw error();
        sha256.update(chunk);
        yield chunk;
      }
      if (this.byteSize === 0) throw errors.file_empty();
      if (byteSize !== undefined && byteSize !== this.byteSize) throw errors.upload_interrupted();
      this.checksum = sha256.digest();
      if (checksum?.equals(this.checksum) === false) throw errors.checksum_mismatch();
    } catch (err) {
      this.error = err;
      throw err;
    }
  }
}

/**
 * The chunks of a stream until its proper end. Unlike a stream's own iterator it ends as soon as
 * `signal` aborts, and leaves the stream open. The memory of a request's chunk is released when the
 * next one is read.
 *
 * @throws the signal's reason; `upload_interrupted` where the stream broke off, or ended before the
 *   message did
 */
async function* readBody(body: Readable & { readonly complete?: boolean }, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let wake = () => {};
  const onData = (chunk: Uint8Array) => {
    chunks.push(chunk);
    body.pause();
    wake();
  };
  const onEnd = () => wake();
  const endings = ['end', 'error', 'close'] as const;
  for (const event of endings) body.on(event, onEnd);
  signal.addEventListener('abort', onEnd);
  body.on('data', onData);
  try {
    for (;;) {
      signal.throwIfAborted();
      const chunk = chunks.shift();
      if (chunk) {
        bytesReceived.add(chunk.byteLength);
        yield chunk;
        // Chunks of other streams may belong to somebody else.
        if (body instanceof IncomingMessage) releaseBytes(chunk);
      } else if (isBroken(body)) throw errors.upload_interrupted();
      else if (body.readableEnded) break;
      else {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        body.resume();
        await promise;
      }
    }
    // Node says of a request whether all of it came.
    if (body.complete === false) throw errors.upload_interrupted();
  } finally {
    body.off('data', onData);
    body.pause();
    for (const event of endings) body.off(event, onEnd);
    signal.removeEventListener('abort', onEnd);
  }
}

function isBroken(body: Readable): boolean {
  return body.readableAborted || body.errored !== null || (body.destroyed && !body.readableEnded);
}
