import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Frame } from '../frame/frame.ts';
import { deliveryLag } from '../live-metrics.ts';
import type { FrameSource, LiveSocket } from '../socket/live-socket.ts';
import { ReplayBuffer } from './replay-buffer.ts';

/** Sockets per turn of the event loop, about half a millisecond. */
const SLICE_SOCKETS = 50;

export interface HubOptions {
  readonly applicationId: string;
  /** The sequence of the last event before the hub was opened. */
  readonly cursor: number;
  readonly keyFingerprint: string;
  readonly readFrames: FrameSource['readFrames'];
}

/** The sockets of one application on this node, and its last events. */
export class Hub implements FrameSource {
  readonly applicationId: string;
  readonly sockets = new Set<LiveSocket>();
  readonly readFrames: FrameSource['readFrames'];
  /** Of the socket key that is valid, as far as this node knows. */
  keyFingerprint: string;
  /** Whether its last socket is gone; another hub may have taken its place. */
  isClosed = false;
  readonly #replay = new ReplayBuffer();
  #cursor: number;
  #isBroadcasting = false;
  #hasMore = false;
  /** When the oldest event happened that was not broadcast yet. */
  #pendingSince: number | undefined;

  constructor(options: HubOptions) {
    this.applicationId = options.applicationId;
    this.keyFingerprint = options.keyFingerprint;
    this.readFrames = options.readFrames;
    this.#cursor = options.cursor;
  }

  get cursor(): number {
    return this.#cursor;
  }

  /** Whether the application was deleted, which is its last event. */
  get hasEnded(): boolean {
    return this.#replay.after(this.#cursor - 1)?.isLast === true;
  }

  frameAfter(sequence: number): Frame | undefined {
    return this.#replay.after(sequence);
  }

  /** Broadcasts the next frame; false where there is a gap before it. Ignores duplicates. */
  accept(frame: Frame): boolean {
    if (frame.sequence <= this.#cursor) return true;
    if (frame.sequence !== this.#cursor + 1) return false;
    this.#replay.push(frame);
    this.#cursor = frame.sequence;
    this.#pendingSince ??= frame.at;
    void this.#broadcast();
    return true;
  }

  /** Continues after events that were trimmed; sockets that miss them are closed to reconnect. */
  skipTo(sequence: number): void {
    this.#cursor = Math.max(this.#cursor, sequence);
    void this.#broadcast();
  }

  /** Calls back for each socket, in slices. */
  async each(callback: (socket: LiveSocket) => void): Promise<void> {
    let count = 0;
    for (const socket of this.sockets) {
      callback(socket);
      count += 1;
      if (count % SLICE_SOCKETS === 0) await nextTurn();
    }
  }

  /** Sends each socket what it lacks; frames that arrive meanwhile go in another round. */
  async #broadcast(): Promise<void> {
    this.#hasMore = true;
    if (this.#isBroadcasting) return;
    this.#isBroadcasting = true;
    while (this.#hasMore) {
      this.#hasMore = false;
      const since = this.#pendingSince;
      this.#pendingSince = undefined;
      await this.each((socket) => socket.catchUp());
      // Clocks may differ.
      if (since !== undefined) deliveryLag.observe(Math.max(0, Date.now() - since) / 1_000);
    }
    this.#isBroadcasting = false;
  }
}
