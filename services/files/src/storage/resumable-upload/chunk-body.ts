import type { Readable } from 'node:stream';
import { errors } from '../../errors.ts';
import { readChunks } from '../upload/verified-body.ts';

/** Longest wait for the next bytes of a chunk, so that a lost connection does not hold its upload. */
const SILENCE_MS_MAX = 10_000;

/** The body of a chunk. Its parts end properly also where it fails: what came of it is stored. */
export class ChunkBody {
  /** Reason of the failure, once it has ended. */
  error: unknown;
  isEnded = false;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #stopped = new AbortController();
  #byteSizeMax: number;
  #rest: Uint8Array | undefined;

  constructor(source: Readable, byteSizeMax: number) {
    this.#byteSizeMax = byteSizeMax;
    this.#chunks = readChunks(source, this.#stopped.signal);
  }

  /** Has it fail with an error, even while it hangs. */
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
      if (value) return value;
    } catch (err) {
      this.error = err;
    } finally {
      clearTimeout(silence);
    }
    this.isEnded = true;
    return undefined;
  }
}
