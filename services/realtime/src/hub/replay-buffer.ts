import type { Frame } from '../frame/frame.ts';

/** Frames of an application in memory. Clients that are further behind read the event log. */
export const REPLAY_FRAMES_MAX = 100;

/** The last frames of one application, without gaps. */
export class ReplayBuffer {
  readonly #frames: Frame[] = [];

  /** Adds a frame; after a gap, the frames before it are dropped. */
  push(frame: Frame): void {
    const last = this.#frames.at(-1);
    if (last && last.sequence + 1 !== frame.sequence) this.#frames.length = 0;
    this.#frames.push(frame);
    if (this.#frames.length > REPLAY_FRAMES_MAX) this.#frames.shift();
  }

  /** The frame after a sequence, or undefined where it is not in memory. */
  after(sequence: number): Frame | undefined {
    const first = this.#frames[0];
    return first && this.#frames[sequence + 1 - first.sequence];
  }
}
