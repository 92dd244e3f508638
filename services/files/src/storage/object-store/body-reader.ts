const EMPTY = new Uint8Array(0);

/**
 * Reads a body into buffers of the caller, at most one chunk ahead. Rejects when the body does,
 * when the signal aborts, and after `fail`, even while the body hangs.
 */
export class BodyReader {
  readonly #iterator: AsyncIterator<Uint8Array>;
  readonly #signal: AbortSignal;
  readonly #onAbort = () => this.fail(this.#signal.reason);
  #rest: Uint8Array = EMPTY;
  #ended = false;
  #failed = false;
  #error: unknown;
  #rejectPending: ((err: unknown) => void) | undefined;

  constructor(body: AsyncIterable<Uint8Array>, signal: AbortSignal) {
    this.#iterator = body[Symbol.asyncIterator]();
    this.#signal = signal;
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Fills a buffer, or less of it where the body ends; returns the number of bytes. */
  async fill(target: Uint8Array): Promise<number> {
    let filled = 0;
    while (filled < target.length && (await this.hasMore())) {
      const rest = this.#rest;
      const room = target.length - filled;
      const chunk = rest.length > room ? rest.subarray(0, room) : rest;
      target.set(chunk, filled);
      filled += chunk.length;
      this.#rest = rest.length > room ? rest.subarray(room) : EMPTY;
    }
    return filled;
  }

  /** Whether at least one more byte comes; waits until that is known. */
  async hasMore(): Promise<boolean> {
    this.throwIfFailed();
    while (this.#rest.length === 0 && !this.#ended) {
      const { done, value } = await this.#next();
      if (done) this.#ended = true;
      else this.#rest = value;
    }
    return this.#rest.length > 0;
  }

  fail(err: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#error = err;
    this.#rejectPending?.(err);
  }

  throwIfFailed(): void {
    if (this.#failed) throw this.#error;
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#rest = EMPTY;
    if (this.#ended) return;
    // Not awaited, as it hangs where the body does.
    void (async () => this.#iterator.return?.())().catch(() => undefined);
  }

  /** A race against one promise of the signal would retain a reaction for every chunk. */
  #next(): Promise<IteratorResult<Uint8Array, unknown>> {
    return new Promise((resolve, reject) => {
      this.#rejectPending = reject;
      this.#iterator.next().then(resolve, (err: unknown) => this.fail(err));
    });
  }
}
