import type { LiveEvent } from './events.ts';

/** End of a connection. */
export interface Closed {
  readonly code: number;
  readonly reason: string;
  /** HTTP status of a rejected handshake. */
  readonly status?: number | undefined;
  readonly retryAfterMs?: number;
}

/** Frames that wait for a slow reader. The service stores as many events. */
const FRAMES_MAX = 1_000;

/** Frames of a connection, between the socket that receives them and the loop that reads them. */
export class Connection {
  /** Undefined while the connection is open. */
  closed: Closed | undefined;
  readonly #frames: string[] = [];
  readonly #ended = new AbortController();
  #wake: () => void = () => undefined;

  /** @param close closes the socket. The signal ends the connection. */
  constructor(close: () => void, signal: AbortSignal | undefined) {
    this.whenEnded.addEventListener('abort', close);
    signal?.addEventListener('abort', () => this.end({ code: 1000, reason: 'aborted' }), { signal: this.whenEnded });
  }

  /** Aborted once the connection has ended. */
  get whenEnded(): AbortSignal {
    return this.#ended.signal;
  }

  receive(frame: string): void {
    if (this.closed) return;
    // The next connection gets the others: it resumes after the last event that was read.
    if (this.#frames.push(frame) >= FRAMES_MAX) this.end({ code: 1006, reason: 'events were read too slowly' });
    this.#wake();
  }

  /** Ends the connection; only the first reason counts. */
  end(closed: Closed): void {
    if (this.closed) return;
    this.closed = closed;
    this.#ended.abort();
    this.#wake();
  }

  /** Every received event, until the connection has ended. */
  async *events(): AsyncGenerator<LiveEvent, void> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame !== undefined) yield JSON.parse(frame);
      else if (this.closed) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}
