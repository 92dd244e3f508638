import { setTimeout as delay } from 'node:timers/promises';
import { LiveClient } from './live.ts';
import type { SeededRandom } from './random.ts';

/** What clients of a fleet do. */
export interface FleetOptions {
  readonly url: string;
  readonly socketKey: string;
  readonly count: number;
  readonly random: SeededRandom;
  /** Longest wait before a client connects again, in milliseconds. */
  readonly reconnectDelayMsMax: number;
}

/** How one of the connections of a fleet ended. */
export interface FleetClose {
  readonly code: number;
  readonly at: number;
}

/** Many clients that reconnect after random delays, go on after what they have heard, and keep book of what they hear. */
export class LiveFleet {
  readonly members: Member[];
  readonly #stopping = new AbortController();
  readonly #done: Promise<unknown>;

  constructor(options: FleetOptions) {
    this.members = Array.from({ length: options.count }, () => new Member(options, this.#stopping.signal));
    this.#done = Promise.all(this.members.map((member) => member.run()));
  }

  /** Members that are connected. */
  get connected(): number {
    return this.members.filter(({ isConnected }) => isConnected).length;
  }

  /** Members that have heard everything up to a sequence. */
  caughtUp(sequence: number): number {
    return this.members.filter(({ last }) => last >= sequence).length;
  }

  /** What went wrong: holes in what members heard, and reconnections that could not be resumed. */
  get flaws(): string[] {
    return this.members.flatMap(({ flaws }) => flaws);
  }

  /** How connections that had been made ended. */
  get closes(): FleetClose[] {
    return this.members.flatMap(({ closes }) => closes);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const member of this.members) member.cut();
    await this.#done;
  }
}

/** One client of a fleet. */
class Member {
  readonly flaws: string[] = [];
  readonly closes: FleetClose[] = [];
  /** The sequence of the last event that it knows of; -1 before its first connection. */
  last = -1;
  isConnected = false;
  readonly #options: FleetOptions;
  readonly #stopping: AbortSignal;
  #client: LiveClient | undefined;

  constructor(options: FleetOptions, stopping: AbortSignal) {
    this.#options = options;
    this.#stopping = stopping;
  }

  async run(): Promise<void> {
    const { random, reconnectDelayMsMax } = this.#options;
    while (!this.#stopping.aborted) {
      await this.#connect();
      await delay(random.below(reconnectDelayMsMax), undefined, { signal: this.#stopping }).catch(() => undefined);
    }
  }

  cut(): void {
    this.#client?.ws.terminate();
  }

  /** Connects, and resolves once the connection has ended. */
  async #connect(): Promise<void> {
    const { url, socketKey } = this.#options;
    const client = new LiveClient(url, socketKey, this.last < 0 ? undefined : String(this.last));
    this.#client = client;
    client.ws.on('message', () => this.#take(client));
    const code = await client.ended;
    if (this.isConnected) this.closes.push({ code, at: client.endedAt });
    this.isConnected = false;
    this.flaws.push(...client.flaws);
  }

  #take({ frames }: LiveClient): void {
    const frame = frames.at(-1);
    if (frame?.sequence === undefined) {
      this.isConnected = true;
      if (this.last >= 0 && frame?.data.resumed !== true) this.flaws.push(`not resumed after ${this.last}`);
      if (this.last < 0) this.last = Number(frame?.data.lastSequence);
      return;
    }
    const sequence = Number(frame.sequence);
    // At least once is what is promised.
    if (sequence <= this.last) return;
    if (sequence !== this.last + 1) this.flaws.push(`${sequence} after ${this.last}`);
    this.last = sequence;
  }
}
