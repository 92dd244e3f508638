import { setTimeout as pause } from 'node:timers/promises';
import { LiveClient, type LiveFrame } from '../../live.ts';

/** Longest wait before a listener connects again, in milliseconds. */
const RECONNECT_MS = 250;

/** A client that listens to the events of an application, connects again whenever it is cut off, and goes on after what it has heard. */
export class Listener {
  /** Versions that it was told of, and when first. */
  readonly heard = new Map<string, number>();
  /** What went wrong: holes, frames that are none, and what could not be resumed. */
  readonly flaws: string[] = [];
  connections = 0;
  #last = -1;
  #client: LiveClient | undefined;
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;

  constructor(url: string, socketKey: string) {
    this.#done = this.#run(url, socketKey);
  }

  /** Whether it has been told what there is to hear. */
  get isListening(): boolean {
    return this.#last >= 0;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#client?.ws.terminate();
    await this.#done;
  }

  async #run(url: string, socketKey: string): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const client = new LiveClient(url, socketKey, this.#last < 0 ? undefined : String(this.#last));
      this.#client = client;
      client.ws.on('message', () => this.#take(client.frames.at(-1) as LiveFrame));
      await client.ended;
      this.flaws.push(...client.flaws);
      await pause(RECONNECT_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  #take({ sequence, data, receivedAt }: LiveFrame): void {
    if (sequence === undefined) {
      this.connections += 1;
      if (this.#last >= 0 && data.resumed !== true) this.flaws.push(`not resumed after ${this.#last}`);
      if (this.#last < 0) this.#last = Number(data.lastSequence);
      return;
    }
    if (data.version !== undefined && !this.heard.has(data.version)) this.heard.set(data.version, receivedAt);
    // At least once is what is promised.
    if (Number(sequence) <= this.#last) return;
    if (Number(sequence) !== this.#last + 1) this.flaws.push(`${sequence} after ${this.#last}`);
    this.#last = Number(sequence);
  }
}
