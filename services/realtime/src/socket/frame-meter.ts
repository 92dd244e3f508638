/** Most frames that a client may send within one window, pings and pongs included; it needs to send none but pongs. */
export const FRAMES_MAX = 100;
/** Length of a window, in milliseconds. */
export const WINDOW_MS = 10_000;

/** Counts the frames that one client sends. */
export class FrameMeter {
  #count = 0;
  #windowEnd = 0;

  /**
   * Counts a frame, and answers whether it is one too many.
   *
   * @param now any monotonic clock, in milliseconds
   */
  isTooMany(now: number): boolean {
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + WINDOW_MS;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count > FRAMES_MAX;
  }
}
