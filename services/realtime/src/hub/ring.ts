import type { Frame } from '../frame/frame.ts';

/** Most frames that a ring holds. Whoever is further behind reads the event log. */
export const RING_FRAMES_MAX = 100;

/** The last frames of one application, each the next in sequence after the one before. */
export class Ring {
  readonly #frames: Frame[] = [];

  /** Adds the next frame. One that is not the next in sequence takes the place of all that were there. */
  push(frame: Frame): void {
    const last = this.#frames.at(-1);
    if (last && last.sequence + 1 !== frame.sequence) this.#frames.length = 0;
    this.#frames.push(frame);
    if (this.#frames.length > RING_FRAMES_MAX) this.#frames.shift();
  }

  /** The frame that follows a sequence, or undefined when it is not held. */
  after(sequence: number): Frame | undefined {
    const first = this.#frames[0];
    return first && this.#frames[sequence + 1 - first.sequence];
  }
}
