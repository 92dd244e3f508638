import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Frame } from '../frame/frame.ts';
import { eventsSent } from '../live-metrics.ts';
import { CLOSE, type Close } from './close-code.ts';
import { FrameMeter } from './frame-meter.ts';

/** Where a socket gets its frames from. */
export interface FrameSource {
  /** The sequence of the newest frame. */
  readonly cursor: number;
  /** The frame after a sequence where it is at hand. */
  frameAfter(sequence: number): Frame | undefined;
  /**
   * The frames after a sequence from the event log, in order; it may begin later where the next is no longer held.
   *
   * @param requestId the request of the client that they are read for
   */
  readFrames(afterSequence: number, requestId: string): Promise<readonly Frame[]>;
}

/** What a socket starts with. */
export interface LiveSocketOptions {
  readonly ws: WebSocket;
  /** The connection under it. */
  readonly connection: Duplex;
  readonly source: FrameSource;
  /** The key that it was opened with. */
  readonly keyFingerprint: string;
  /** When apps was last known to hold that key valid, as `performance.now()` counts. */
  readonly verifiedAt: number;
  /** The sequence of the last event that the client knows of. */
  readonly position: number;
  /** What it was opened with. */
  readonly requestId: string;
  /** How long the client may leave what waits for it unread, in milliseconds; 10,000 unless set. */
  readonly waitMsMax?: number;
}

/** Bytes that may wait for a client to read them. Frames beyond wait in the ring or in the log, of which there is one for all. */
const WAITING_BYTES_MAX = 256 * 1024;
/** How long they may wait until the client is given up: whoever is that far behind has to read 26 KiB a second. */
const WAIT_MS_MAX = 10_000;
/** How long a client that sends too much has to hear why, in milliseconds. */
const FLOOD_CLOSE_MS = 1_000;
const PING_TOKEN_BYTES = 8;
/** Pings that may go unanswered. */
const PINGS_MISSED_MAX = 2;

/** One client's connection: a reader with a place in its application's events, which is sent what comes after in order. */
export class LiveSocket {
  readonly keyFingerprint: string;
  readonly verifiedAt: number;
  readonly #ws: WebSocket;
  readonly #connection: Duplex;
  readonly #source: FrameSource;
  readonly #requestId: string;
  readonly #meter = new FrameMeter();
  readonly #waitMsMax: number;
  #position: number;
  #pingsMissed = 0;
  /** What the last ping carried, and its pong has to. */
  #pingToken: Buffer | undefined;
  #isReading = false;
  #blockedTimer: NodeJS.Timeout | undefined;

  constructor(options: LiveSocketOptions) {
    this.#ws = options.ws;
    this.#connection = options.connection;
    this.#source = options.source;
    this.#requestId = options.requestId;
    this.keyFingerprint = options.keyFingerprint;
    this.verifiedAt = options.verifiedAt;
    this.#position = options.position;
    this.#waitMsMax = options.waitMsMax ?? WAIT_MS_MAX;
    this.#listen();
  }

  /** Sends what is no event, before all events. */
  greet(text: string): void {
    this.#ws.send(text);
  }

  /** Sends frames that follow the socket's place, then whatever else there is. */
  start(frames: readonly Frame[]): void {
    if (!this.#sendAll(frames)) this.close(CLOSE.goingAway);
    this.catchUp();
  }

  /** Sends all that comes after the socket's place, as far as the client reads. */
  catchUp(): void {
    while (this.#position < this.#source.cursor && this.#canSend()) {
      const frame = this.#source.frameAfter(this.#position);
      if (!frame) return void this.#catchUpFromLog();
      this.#send(frame);
    }
  }

  /** Closes the connection, with a few seconds for the client to answer. */
  close({ code, reason }: Close): void {
    this.#ws.close(code, reason);
  }

  /** Cuts the connection off. */
  cut(): void {
    this.#ws.terminate();
  }

  /** Asks for a sign of life, and cuts off a client that has not given one for too long. */
  ping(): void {
    if (this.#pingsMissed >= PINGS_MISSED_MAX) this.cut();
    this.#pingsMissed += 1;
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    this.#pingToken = randomBytes(PING_TOKEN_BYTES);
    this.#ws.ping(this.#pingToken);
    this.#blockWhereFull();
  }

  /** Calls back once the connection is gone, with the code that it was closed with. */
  onGone(callback: (code: number) => void): void {
    this.#ws.once('close', (code) => {
      clearTimeout(this.#blockedTimer);
      callback(code);
    });
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

  /** Sends frames until one does not fit any more. Answers false when there is a hole before one of them. */
  #sendAll(frames: readonly Frame[]): boolean {
    for (const frame of frames) {
      if (!this.#canSend()) return true;
      if (frame.sequence <= this.#position) continue;
      if (frame.sequence !== this.#position + 1) return false;
      this.#send(frame);
    }
    return true;
  }

  async #catchUpFromLog(): Promise<void> {
    this.#isReading = true;
    const frames = await this.#source.readFrames(this.#position, this.#requestId).catch(() => []);
    this.#isReading = false;
    // What the log can't give, the client has to ask for again: it is told there what it has missed.
    if (frames.length === 0 || !this.#sendAll(frames)) return this.close(CLOSE.goingAway);
    this.catchUp();
  }

  /** Sends no more, where too much waits, until the client has read that. */
  #blockWhereFull(): void {
    if (this.#blockedTimer || this.#ws.bufferedAmount <= WAITING_BYTES_MAX) return;
    this.#blockedTimer = setTimeout(() => this.#giveUp(), this.#waitMsMax);
    this.#connection.once('drain', () => {
      clearTimeout(this.#blockedTimer);
      this.#blockedTimer = undefined;
      this.catchUp();
    });
  }

  #giveUp(): void {
    // Where the client has ended its side, the library waits without end for it to read the rest.
    if (this.#ws.readyState === this.#ws.OPEN) this.close(CLOSE.readsTooSlowly);
    else this.cut();
  }

  #listen(): void {
    const ws = this.#ws;
    // The library closes the connection itself; an error that nobody listens for would end the process.
    ws.on('error', () => undefined);
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
      // Whoever has not read the ping can't tell what is in it.
      if (this.#pingToken && data.equals(this.#pingToken)) this.#pingsMissed = 0;
      this.#isFlood();
    });
  }

  #isFlood(): boolean {
    if (!this.#meter.isTooMany(performance.now())) return false;
    this.close(CLOSE.sendsTooMuch);
    // Nothing more is read, or the flood would be taken in until the client has answered; so its answer is not heard, and not waited for.
    this.#ws.pause();
    setTimeout(() => this.cut(), FLOOD_CLOSE_MS).unref();
    return true;
  }
}
