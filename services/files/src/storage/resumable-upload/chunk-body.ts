import { createHash, type Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { errors } from '../../proto-errors.ts';
import { readChunks } from '../upload/verified-body.ts';

/** Longest wait for the next bytes of a chunk: a lost connection must not hold its upload. */
const SILENCE_MS_MAX = 10_000;

/** The body of a chunk. Its parts end properly also where it fails: what came of it is stored. */
export class ChunkBody {
  error: unknown;
  isEnded = false;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #stopped = new AbortController();
  #byteSizeMax: number;
  #rest: Uint8Array | undefined;
  readonly #checksum: Buffer | undefined;
  readonly #sha256: Hash | undefined;

  /** @param checksum SHA-256 that the whole must have */
  constructor(source: Readable, byteSizeMax: number, checksum?: Buffer) {
    this.#byteSizeMax = byteSizeMax;
    this.#checksum = checksum;
    this.#sha256 = checksum && createHash('sha256');
    this.#chunks = readChunks(source, this.#stopped.signal);
  }

  stop(error: unknown): void {
    this.#stopped.abort(error);
  }

  /** The next bytes, as many or less at the end. */
  async *take(byteSize: number): AsyncGenerator<Uint8Array> {
    for (let left = byteSize; left > 0; ) {
      const chunk: Uint8Array | undefined = this.#rest ?? (await this.#next());
      if (!chunk) return;
      const bytes = chunk.subarray(0, left);
      this.#rest = chunk.length > left ? chunk.subarray(left) : undefined;
      left -= bytes.length;
      yield bytes;
    }
  }

  async #next(): Promise<Uint8Array | undefined> {
    if (this.isEnded) return undefined;
    const silence = setTimeout(() => this.stop(errors.upload_timeout()), SILENCE_MS_MAX);
    try {
      const { value } = await this.#chunks.next();
      this.#byteSizeMax -= value?.byteLength ?? 0;
      if (this.#byteSizeMax < 0) throw errors.chunk_too_long();
      if (value) this.#sha256?.update(value);
      if (value) return value;
      if (this.#checksum && !this.#sha256?.digest().equals(this.#checksum)) throw errors.checksum_mismatch();
    } catch (err) {
      this.error = err;
    } finally {
      clearTimeout(silence);
    }
    this.isEnded = true;
    return undefined;
  }
}
