import { setTimeout as pause } from 'node:timers/promises';
import { LiveClient, type LiveFrame } from '../client/live.ts';

const RECONNECT_MS = 250;

/** A client of an application that reconnects after every close and resumes. */
export class Listener {
  /** Time of the first receipt, by version. */
  readonly received = new Map<string, number>();
  /** Gaps, invalid frames and connections that could not be resumed. */
  readonly flaws: string[] = [];
  readonly closes: Array<{ readonly code: number; readonly at: number }> = [];
  lastVersion = '';
  isConnected = false;
  #last = -1;
  #client: LiveClient | undefined;
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;

  constructor(url: string, socketKey: string) {
    this.#done = this.#run(url, socketKey);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#client?.ws.terminate();
    await this.#done;
  }

  async #run(url: string, socketKey: string): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const client = new LiveClient(url, socketKey, this.#last < 0 ? undefined : String(this.#last));
      this.#client = client;
      client.ws.on('message', () => this.#take(client.frames.at(-1) as LiveFrame));
      const code = await client.ended;
      if (this.isConnected) this.closes.push({ code, at: client.endedAt });
      this.isConnected = false;
      this.flaws.push(...client.flaws);
      await pause(RECONNECT_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  #take({ sequence, data, receivedAt }: LiveFrame): void {
    if (sequence === undefined) {
      this.isConnected = true;
      if (this.#last >= 0 && data.resumed !== true) this.flaws.push(`not resumed after ${this.#last}`);
      if (this.#last < 0) this.#last = Number(data.lastSequence);
      return;
    }
    // Events are delivered at least once.
    if (Number(sequence) <= this.#last) return;
    if (Number(sequence) !== this.#last + 1) this.flaws.push(`${sequence} after ${this.#last}`);
    this.#last = Number(sequence);
    this.received.set(data.version, receivedAt);
    this.lastVersion = data.version;
  }
}
