import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Frame } from '../frame/frame.ts';
import { eventsSent } from '../live-metrics.ts';
import { CLOSE, type Close } from './close-code.ts';

export interface FrameSource {
  readonly cursor: number;
  /** The frame after a sequence, where it is in the replay buffer. */
  frameAfter(sequence: number): Frame | undefined;
  /** The frames after a sequence from the event log; they begin later where it was trimmed. */
  readFrames(afterSequence: number, requestId: string): Promise<readonly Frame[]>;
}

export interface LiveSocketOptions {
  readonly ws: WebSocket;
  readonly connection: Duplex;
  readonly source: FrameSource;
  readonly keyFingerprint: string;
  /** Epoch of the events that the client may receive. */
  readonly epoch: string;
  /** Time of the key's verification, as `performance.now()` counts. */
  readonly verifiedAt: number;
  readonly position: number;
  readonly requestId: string;
}

/** Bytes that may wait for a client to read them. */
const WAITING_BYTES_MAX = 256 * 1024;
/** Longest time of a full buffer: a client has to read 26 KiB a second then. */
const WAIT_MS_MAX = 10_000;
/** Frames that a client may send per window, pings and pongs included. */
export const FRAMES_MAX = 100;
const FRAME_WINDOW_MS = 10_000;
const FLOOD_CLOSE_MS = 1_000;
const PING_INTERVAL_MS = 30_000;
const PING_TOKEN_BYTES = 8;
const PINGS_MISSED_MAX = 2;

/**
 * Without a listener, an error would end the process. A function made for each connection would
 * keep its request in memory.
 */
export const ignoreError = () => undefined;

/** One client's connection, with its position in the events of its application. */
export class LiveSocket {
  readonly keyFingerprint: string;
  readonly verifiedAt: number;
  readonly #ws: WebSocket;
  readonly #options: LiveSocketOptions;
  #position: number;
  #frameCount = 0;
  #windowEnd = 0;
  #pingsMissed = 0;
  /** Payload of the last ping, which its pong must repeat. */
  #pingToken: Buffer | undefined;
  #isReading = false;
  #blockedTimer: NodeJS.Timeout | undefined;
  #pingTimer: NodeJS.Timeout;
  #knowsExpiry = false;

  constructor(options: LiveSocketOptions) {
    this.#ws = options.ws;
    this.#options = options;
    this.keyFingerprint = options.keyFingerprint;
    this.verifiedAt = options.verifiedAt;
    this.#position = options.position;
    // Begins at a random time, so that sockets that open together are not pinged together.
    this.#pingTimer = setTimeout(() => {
      this.#ping();
      this.#pingTimer = setInterval(() => this.#ping(), PING_INTERVAL_MS);
    }, Math.random() * PING_INTERVAL_MS);
    this.#listen();
  }

  /** Sends the first frame, which carries the state. */
  greet(text: string): void {
    this.#ws.send(text);
  }

  /** Sends the frames after the position, then all later ones. */
  start(frames: readonly Frame[]): void {
    if (!this.#sendAll(frames)) this.close(CLOSE.goingAway);
    this.catchUp();
  }

  /** Sends all frames after the position, as far as the client reads. */
  catchUp(): void {
    const { source, epoch } = this.#options;
    while (this.#position < source.cursor && this.#canSend()) {
      const frame = source.frameAfter(this.#position);
      if (!frame) return void this.#catchUpFromLog();
      if (frame.epoch !== epoch) return void this.close(CLOSE.goingAway);
      this.#send(frame);
    }
  }

  /** Tells the client once when its key expires. */
  announceExpiry(text: string): void {
    if (!this.#knowsExpiry) this.#ws.send(text);
    this.#knowsExpiry = true;
  }

  close({ code, reason }: Close): void {
    this.#ws.close(code, reason);
  }

  cut(): void {
    this.#ws.terminate();
  }

  onGone(callback: (code: number) => void): void {
    this.#ws.once('close', callback);
  }

  /** Pings the client; cuts it off after two pings without a pong. */
  #ping(): void {
    if (this.#pingsMissed >= PINGS_MISSED_MAX) this.cut();
    this.#pingsMissed += 1;
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    this.#pingToken = randomBytes(PING_TOKEN_BYTES);
    this.#ws.ping(this.#pingToken);
    this.#blockWhereFull();
  }

  #canSend(): boolean {
    return this.#blockedTimer === undefined && !this.#isReading && this.#ws.readyState === this.#ws.OPEN;
  }

  #send(frame: Frame): void {
    this.#position = frame.sequence;
    if (frame.bytes.length > 0) {
      this.#ws.send(frame.bytes, { binary: false });
      eventsSent.add(1);
    }
    if (frame.isLast) this.close(CLOSE.applicationDeleted);
    else this.#blockWhereFull();
  }

  /**
   * Sends frames until the buffer is full; false for one of another epoch, or after a gap.
   */
  #sendAll(frames: readonly Frame[]): boolean {
    for (const frame of frames) {
      if (!this.#canSend()) return true;
      if (frame.sequence <= this.#position) continue;
      if (frame.sequence !== this.#position + 1 || frame.epoch !== this.#options.epoch) return false;
      this.#send(frame);
    }
    return true;
  }

  async #catchUpFromLog(): Promise<void> {
    this.#isReading = true;
    const { source, requestId } = this.#options;
    const frames = await source.readFrames(this.#position, requestId).catch(() => []);
    this.#isReading = false;
    // After a gap the client has to reconnect: its next `ready` says that it missed events.
    if (frames.length === 0 || !this.#sendAll(frames)) return this.close(CLOSE.goingAway);
    this.catchUp();
  }

  /** Stops sending while the buffer is full, until the client has read it. */
  #blockWhereFull(): void {
    if (this.#blockedTimer || this.#ws.bufferedAmount <= WAITING_BYTES_MAX) return;
    this.#blockedTimer = setTimeout(() => this.#endBlocked(), WAIT_MS_MAX);
    this.#options.connection.once('drain', () => {
      clearTimeout(this.#blockedTimer);
      this.#blockedTimer = undefined;
      this.catchUp();
    });
  }

  #endBlocked(): void {
    // After the client ended its side, the library would wait for it to read the rest.
    if (this.#ws.readyState === this.#ws.OPEN) this.close(CLOSE.readsTooSlowly);
    else this.cut();
  }

  #listen(): void {
    const ws = this.#ws;
    ws.on('error', ignoreError);
    ws.on('close', () => {
      clearTimeout(this.#blockedTimer);
      clearTimeout(this.#pingTimer);
    });
    ws.on('message', (_, isBinary) => {
      if (this.#isFlood()) return;
      if (isBinary) this.close(CLOSE.binaryFrame);
    });
    ws.on('ping', (data: Buffer) => {
      if (this.#isFlood() || this.#blockedTimer || ws.readyState !== ws.OPEN) return;
      ws.pong(data);
      this.#blockWhereFull();
    });
    ws.on('pong', (data: Buffer) => {
      // A client that does not read can't know the payload.
      if (this.#pingToken && data.equals(this.#pingToken)) this.#pingsMissed = 0;
      this.#isFlood();
    });
  }

  /** Counts a frame of the client; closes the connection where it is over the limit. */
  #isFlood(): boolean {
    const now = performance.now();
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + FRAME_WINDOW_MS;
      this.#frameCount = 0;
    }
    this.#frameCount += 1;
    if (this.#frameCount <= FRAMES_MAX) return false;
    this.close(CLOSE.sendsTooMuch);
    // Without the pause, the flood would be read until the client answers the close frame.
    this.#ws.pause();
    setTimeout(() => this.cut(), FLOOD_CLOSE_MS).unref();
    return true;
  }
}
