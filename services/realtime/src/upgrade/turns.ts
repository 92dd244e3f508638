/**
 * How long work may keep others waiting before they get their turn, in milliseconds. A request takes several turns of the event loop, so that it waits
 * for several slices.
 */
const SLICE_MS = 0.25;

/**
 * Does small pieces of work in the order in which they come, a fraction of a millisecond's worth at a time, so that thousands that come at once hold nobody else
 * up.
 */
export class Turns {
  #waiting: Array<() => void> = [];
  #next = 0;

  /** Does a piece of work soon. It must not throw. */
  take(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length === 1) setImmediate(() => this.#slice());
  }

  #slice(): void {
    const end = performance.now() + SLICE_MS;
    do {
      this.#waiting[this.#next]?.();
      this.#next += 1;
    } while (this.#next < this.#waiting.length && performance.now() < end);
    if (this.#next < this.#waiting.length) {
      setImmediate(() => this.#slice());
      return;
    }
    this.#waiting = [];
    this.#next = 0;
  }
}
