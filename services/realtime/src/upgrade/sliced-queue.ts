/** Time per turn of the event loop, in milliseconds. A request takes several turns, so it waits for several slices. */
const SLICE_MS = 0.25;

/** Runs short work in order, a slice per turn, so that thousands of upgrades do not block the event loop. */
export class SlicedQueue {
  #waiting: Array<() => void> = [];
  #next = 0;

  /** Runs work soon. It must not throw. */
  push(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length === 1) setImmediate(() => this.#runSlice());
  }

  #runSlice(): void {
    const end = performance.now() + SLICE_MS;
    do {
      this.#waiting[this.#next]?.();
      this.#next += 1;
    } while (this.#next < this.#waiting.length && performance.now() < end);
    if (this.#next < this.#waiting.length) {
      setImmediate(() => this.#runSlice());
      return;
    }
    this.#waiting = [];
    this.#next = 0;
  }
}
