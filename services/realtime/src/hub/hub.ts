import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Frame } from '../frame/frame.ts';
import { deliveryLag } from '../live-metrics.ts';
import type { FrameSource, LiveSocket } from '../socket/live-socket.ts';
import { Ring } from './ring.ts';

/** Sockets that are sent to before others get their turn: half a millisecond's worth. What others do takes several turns, so that they wait for several slices. */
export const SLICE_SOCKETS = 50;

/** What a hub starts with. */
export interface HubOptions {
  readonly applicationId: string;
  /** The sequence that the hub begins after. */
  readonly cursor: number;
  readonly keyFingerprint: string;
  readonly readFrames: (afterSequence: number, requestId: string) => Promise<readonly Frame[]>;
}

/** The sockets of one application on this node, and the last of its events. */
export class Hub implements FrameSource {
  readonly applicationId: string;
  readonly sockets = new Set<LiveSocket>();
  readonly readFrames: (afterSequence: number, requestId: string) => Promise<readonly Frame[]>;
  /** The socket key that is valid, as far as is known here. */
  keyFingerprint: string;
  readonly #ring = new Ring();
  #cursor: number;
  #isSpreading = false;
  #hasMore = false;
  /** When the oldest event happened that is not sent on yet. */
  #unsentAt: number | undefined;

  constructor(options: HubOptions) {
    this.applicationId = options.applicationId;
    this.keyFingerprint = options.keyFingerprint;
    this.readFrames = options.readFrames;
    this.#cursor = options.cursor;
  }

  get cursor(): number {
    return this.#cursor;
  }

  /** Whether the application's last event has been taken in. */
  get hasEnded(): boolean {
    return this.#ring.after(this.#cursor - 1)?.isLast === true;
  }

  frameAfter(sequence: number): Frame | undefined {
    return this.#ring.after(sequence);
  }

  /** Takes the next frame in and sends it on. Answers false for one that does not follow, which is not taken in. */
  accept(frame: Frame): boolean {
    if (frame.sequence <= this.#cursor) return true;
    if (frame.sequence !== this.#cursor + 1) return false;
    this.#ring.push(frame);
    this.#cursor = frame.sequence;
    this.#unsentAt ??= frame.at;
    void this.#spread();
    return true;
  }

  /** Goes on after events that nobody holds any more; sockets that miss them are told so by what follows. */
  skipTo(sequence: number): void {
    this.#cursor = Math.max(this.#cursor, sequence);
    void this.#spread();
  }

  /** Calls back for each of the sockets, some at a time. */
  async each(callback: (socket: LiveSocket) => void): Promise<void> {
    let count = 0;
    for (const socket of this.sockets) {
      callback(socket);
      count += 1;
      if (count % SLICE_SOCKETS === 0) await nextTurn();
    }
  }

  /** Sends every socket what it lacks. What comes in meanwhile is sent in another round. */
  async #spread(): Promise<void> {
    this.#hasMore = true;
    if (this.#isSpreading) return;
    this.#isSpreading = true;
    while (this.#hasMore) {
      this.#hasMore = false;
      const unsentAt = this.#unsentAt;
      this.#unsentAt = undefined;
      await this.each((socket) => socket.catchUp());
      // Clocks may differ.
      if (unsentAt !== undefined) deliveryLag.observe(Math.max(0, Date.now() - unsentAt) / 1_000);
    }
    this.#isSpreading = false;
  }
}
