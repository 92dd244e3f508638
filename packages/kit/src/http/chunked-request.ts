import { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { commonErrors, type DomainError } from '../errors/errors.ts';

/** Smallest average size of chunks, and the first bytes of a body, to which it does not apply. */
const AVERAGE_BYTES_MIN = 256;
const FREE_BYTES = 64 * 1024;
/** Chunks that the free bytes may have without being counted later. */
const FREE_CHUNKS = FREE_BYTES / AVERAGE_BYTES_MIN;

/** Chunks below this size are copied together, into buffers of PAGE_BYTES. */
const SMALL_BYTES = 4 * 1024;
const PAGE_BYTES = 16 * 1024;

/** Time between two reads of small chunks. Node reads 64 KiB, which take up to 40 ms to parse. */
const PAUSE_MS = 100;

/** Resolves at the turn of the last connection in line, which the limit of connections bounds. */
let lastInLine: Promise<unknown> = Promise.resolve();

/**
 * A request whose chunks (RFC 9112, 7.1) cost little, however small. Node calls back for each chunk
 * and reads up to 2 MiB from one connection before others, so one-byte chunks block all for
 * seconds. Here
 *
 * - small chunks reach the reader together;
 * - connections that send them are read one after the other, with pauses;
 * - the body fails with `chunks_too_small` once its chunks are below 256 bytes on average after the
 *   first 64 KiB. The last chunk does not count.
 *
 * For `http.createServer` as its `IncomingMessage`.
 */
export class ChunkedRequest extends IncomingMessage {
  #bytes = 0;
  #chunks = 0;
  /** Bytes that the connection had brought when the last chunk came. */
  #bytesRead = 0;
  /** Small chunks that the reader has not been given fill the beginning of the page. */
  #page: Buffer | undefined;
  #pageBytes = 0;
  /** Chunks of this turn of the event loop; undefined before the first small one. */
  #recent: { chunks: number; bytes: number } | undefined;
  #isPaused = false;
  /** Error that ended the reading of the body. */
  rejection: DomainError | undefined;

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this.headers['transfer-encoding'] === undefined) return super.push(chunk, encoding);
    if (this.rejection) return false;
    if (chunk === null) {
      this.#flush();
      return super.push(null);
    }
    if (this.#bytes > FREE_BYTES && this.#chunks * AVERAGE_BYTES_MIN > this.#bytes) return this.#reject();
    this.#count(chunk);
    if (chunk.byteLength < SMALL_BYTES) return this.#hold(chunk);
    this.#flush();
    return super.push(chunk);
  }

  override _read(size: number): void {
    if (this.rejection) this.destroy(this.rejection);
    else if (!this.#isPaused) super._read(size);
  }

  override _destroy(err: Error | null, callback: (err?: Error | null) => void): void {
    // Node would close the connection, and the client would get no response.
    if (err && err === this.rejection) callback(this.listenerCount('error') > 0 ? err : null);
    else super._destroy(err, callback);
  }

  #count(chunk: Buffer): void {
    const { bytesRead } = this.socket;
    // The first of what Node has read is the rest of a chunk that has begun before, almost always.
    if (bytesRead === this.#bytesRead) this.#chunks += 1;
    this.#bytesRead = bytesRead;
    this.#bytes += chunk.byteLength;
    if (this.#bytes <= FREE_BYTES) this.#chunks = Math.min(this.#chunks, FREE_CHUNKS);
  }

  #hold(chunk: Buffer): boolean {
    if (this.#pageBytes + chunk.byteLength > PAGE_BYTES) this.#flush();
    this.#page ??= Buffer.allocUnsafeSlow(PAGE_BYTES);
    this.#page.set(chunk, this.#pageBytes);
    this.#pageBytes += chunk.byteLength;
    if (!this.#recent) {
      this.#recent = { chunks: 0, bytes: 0 };
      setImmediate(() => {
        this.#recent = undefined;
        this.#flush();
      });
    }
    this.#recent.chunks += 1;
    this.#recent.bytes += chunk.byteLength;
    const { chunks, bytes } = this.#recent;
    if (!this.#isPaused && chunks > FREE_CHUNKS && bytes < chunks * AVERAGE_BYTES_MIN) void this.#pause();
    return !this.#isPaused;
  }

  #flush(): void {
    if (!this.#page || this.#pageBytes === 0) return;
    // A copy, since a reader that stores it would store the whole page for one byte.
    const bytes = Buffer.from(this.#page.subarray(0, this.#pageBytes));
    this.#pageBytes = 0;
    if (!this.destroyed && !super.push(bytes)) this.socket?.pause();
  }

  /** Pauses the socket until this connection's turn. */
  async #pause(): Promise<void> {
    this.#isPaused = true;
    const { socket } = this;
    socket.pause();
    lastInLine = lastInLine.then(() => (socket.destroyed ? undefined : delay(PAUSE_MS, undefined, { ref: false })));
    await lastInLine;
    this.#isPaused = false;
    // The next bytes may be another request.
    if (!this.rejection && (this.complete || this.readableLength < this.readableHighWaterMark)) socket.resume();
  }

  #reject(): false {
    this.rejection = commonErrors.chunks_too_small();
    this.#pageBytes = 0;
    // Without a reader, the next one gets it.
    if (this.listenerCount('error') > 0) this.destroy(this.rejection);
    return false;
  }
}
