import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import pLimit, { type LimitFunction } from 'p-limit';
import type { ByteRange } from './object-store.ts';

/** Bytes per read, of which a body holds one. 64 KiB would cost a third more CPU. */
export const READ_BYTES = 96 * 1024;

/** Concurrent reads of one store: half of libuv's threads, so that other file operations go on. */
const READS_MAX = 2;

/**
 * Limits the concurrent reads of a store. Otherwise a burst of downloads fills the buffers of all
 * their connections in one turn of the event loop, which delays other requests.
 */
export const createReadQueue = (): LimitFunction => pLimit(READS_MAX);

/**
 * The bytes of a file, each chunk read on demand. Node's own stream reads ahead, which doubles the
 * memory of a download whose client does not read.
 */
export class FileBody extends Readable {
  readonly #handle: FileHandle;
  readonly #reads: LimitFunction;
  readonly #end: number;
  #position: number;
  bytesRead = 0;

  constructor(handle: FileHandle, reads: LimitFunction, range?: ByteRange) {
    super({ highWaterMark: 0 });
    this.#handle = handle;
    this.#reads = reads;
    this.#position = range?.start ?? 0;
    this.#end = range ? range.end + 1 : Number.POSITIVE_INFINITY;
  }

  override _read(): void {
    this.#reads(() => this.#readChunk()).catch((err: Error) => this.destroy(err));
  }

  override _destroy(err: Error | null, callback: (err?: Error | null) => void): void {
    this.#handle.close().then(
      () => callback(err),
      (closeErr: Error) => callback(err ?? closeErr),
    );
  }

  async #readChunk(): Promise<void> {
    const length = Math.min(READ_BYTES, this.#end - this.#position);
    if (this.destroyed) return;
    if (length === 0) return void this.push(null);
    const buffer = Buffer.allocUnsafeSlow(length);
    const { bytesRead } = await this.#handle.read(buffer, 0, length, this.#position);
    this.#position += bytesRead;
    this.bytesRead += bytesRead;
    if (bytesRead === 0) this.push(null);
    else this.push(bytesRead === length ? buffer : buffer.subarray(0, bytesRead));
  }
}
