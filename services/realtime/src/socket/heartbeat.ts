import type { LiveSocket } from './live-socket.ts';

/** Groups that sockets are pinged in, one after the other, so that no moment has to bear them all. */
const GROUPS = 30;

/** Pings sockets, each once in an interval. */
export class Heartbeat {
  readonly #groups = Array.from({ length: GROUPS }, () => new Set<LiveSocket>());
  readonly #tickMs: number;
  #turn = 0;
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(intervalMs: number) {
    this.#tickMs = intervalMs / GROUPS;
  }

  start(): void {
    this.#timer = setInterval(() => this.#tick(), this.#tickMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Pings a socket until it is gone, for the first time within an interval. */
  add(socket: LiveSocket): void {
    // Thousands may come at once, and are not to be pinged at once for ever after.
    const group = this.#groups[this.#next] as Set<LiveSocket>;
    this.#next = (this.#next + 1) % GROUPS;
    group.add(socket);
    socket.onGone(() => group.delete(socket));
  }

  #tick(): void {
    this.#turn = (this.#turn + 1) % GROUPS;
    for (const socket of this.#groups[this.#turn] as Set<LiveSocket>) socket.ping();
  }
}
