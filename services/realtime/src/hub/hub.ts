import { setImmediate as nextTurn } from 'node:timers/promises';
import type { KeyHolder } from '../event/apps-client.ts';
import type { EventLog } from '../event/event-log.ts';
import type { Frame } from '../frame/frame.ts';
import { deliveryLag } from '../live-metrics.ts';
import type { FrameSource, LiveSocket } from '../socket/live-socket.ts';

/** Sockets per turn of the event loop, about half a millisecond. */
const SLICE_SOCKETS = 50;

/** Frames of an application in memory. Clients that are further behind read the event log. */
export const REPLAY_FRAMES_MAX = 100;

/** An application as it was when a socket key was verified. */
export type HubApplication = Pick<KeyHolder, 'applicationId' | 'accountId' | 'lastSequence' | 'keyFingerprint' | 'epoch'>;

/** The sockets of one application on this node, and its last events. */
export class Hub implements FrameSource {
  readonly applicationId: string;
  readonly accountId: string;
  /** Epoch of all its frames. After a change of the epoch, another hub takes over. */
  readonly epoch: string;
  readonly sockets = new Set<LiveSocket>();
  /** Of the socket key that is valid, as far as this node knows. */
  keyFingerprint: string;
  /** The sequence of the newest event that this node knows. */
  cursor: number;
  /** True if its last socket is gone; there may be another hub of the application. */
  isClosed = false;
  readonly #log: Pick<EventLog, 'readForClient'>;
  /** The replay buffer: the last frames, without gaps. */
  readonly #replay: Frame[] = [];
  #isBroadcasting = false;
  #hasMore = false;
  /** Time of the oldest event that was not broadcast yet. */
  #pendingSince: number | undefined;

  constructor(application: HubApplication, log: Pick<EventLog, 'readForClient'>) {
    const { applicationId, accountId, lastSequence, keyFingerprint, epoch } = application;
    this.applicationId = applicationId;
    this.accountId = accountId;
    this.epoch = epoch;
    this.keyFingerprint = keyFingerprint;
    this.cursor = lastSequence;
    this.#log = log;
  }

  /** True if the application was deleted, which is its last event. */
  get hasEnded(): boolean {
    return this.frameAfter(this.cursor - 1)?.isLast === true;
  }

  frameAfter(sequence: number): Frame | undefined {
    const first = this.#replay[0];
    return first && this.#replay[sequence + 1 - first.sequence];
  }

  readFrames(afterSequence: number, requestId: string): Promise<readonly Frame[]> {
    const { applicationId, cursor: lastSequence } = this;
    return this.#log.readForClient({ applicationId, afterSequence, lastSequence, requestId });
  }

  /**
   * Broadcasts the next frame; false for one of another epoch, or after a gap. Ignores duplicates.
   */
  accept(frame: Frame): boolean {
    if (frame.epoch !== this.epoch) return false;
    if (frame.sequence <= this.cursor) return true;
    if (frame.sequence !== this.cursor + 1) return false;
    // After skipTo, the frames before the gap are useless.
    if (this.#replay.at(-1)?.sequence !== this.cursor) this.#replay.length = 0;
    this.#replay.push(frame);
    if (this.#replay.length > REPLAY_FRAMES_MAX) this.#replay.shift();
    this.cursor = frame.sequence;
    this.#pendingSince ??= frame.at;
    void this.#broadcast();
    return true;
  }

  /** Continues after events that were trimmed; sockets that miss them are closed to reconnect. */
  skipTo(sequence: number): void {
    this.cursor = Math.max(this.cursor, sequence);
    void this.#broadcast();
  }

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
