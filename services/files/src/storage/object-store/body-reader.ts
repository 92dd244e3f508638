const EMPTY = new Uint8Array(0);

/**
 * Reads a body into buffers of the caller's, no further ahead than one piece of the body. It ends with an error when the body fails, when the
 * signal aborts, and when {@link BodyReader.fail} is called, also while a body that hangs owes its next piece.
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

  /** Fills a buffer, or less of it where the body ends; gives the number of bytes. */
  async fill(target: Uint8Array): Promise<number> {
    let filled = 0;
    while (filled < target.length && (await this.hasMore())) {
      const rest = this.#rest;
      const room = target.length - filled;
      const piece = rest.length > room ? rest.subarray(0, room) : rest;
      target.set(piece, filled);
      filled += piece.length;
      this.#rest = rest.length > room ? rest.subarray(room) : EMPTY;
    }
    return filled;
  }

  /** Whether there is at least one more byte; waits until that is known. */
  async hasMore(): Promise<boolean> {
    this.throwIfFailed();
    while (this.#rest.length === 0 && !this.#ended) {
      const { done, value } = await this.#next();
      if (done) this.#ended = true;
      else this.#rest = value;
    }
    return this.#rest.length > 0;
  }

  /** Makes every further call reject, and the one under way. */
  fail(err: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#error = err;
    this.#rejectPending?.(err);
  }

  throwIfFailed(): void {
    if (this.#failed) throw this.#error;
  }

  /** Lets go of the signal, and of a body that was not read to its end. */
  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#rest = EMPTY;
    if (this.#ended) return;
    // A body that hangs does not answer this either, so nobody waits for it.
    void (async () => this.#iterator.return?.())().catch(() => undefined);
  }

  /** Not a race against one promise of the signal's: that one would keep a reaction for every piece until the end of the body. */
  #next(): Promise<IteratorResult<Uint8Array, unknown>> {
    return new Promise((resolve, reject) => {
      this.#rejectPending = reject;
      this.#iterator.next().then(resolve, (err: unknown) => this.fail(err));
    });
  }
}
