/** Frames that a client may send per window, pings and pongs included. */
export const FRAMES_MAX = 100;
export const WINDOW_MS = 10_000;

/** Rate limit on the frames of one client. */
export class FrameMeter {
  #count = 0;
  #windowEnd = 0;

  /** Counts a frame; true where it is over the limit. */
  isOverLimit(): boolean {
    const now = performance.now();
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + WINDOW_MS;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count > FRAMES_MAX;
  }
}
