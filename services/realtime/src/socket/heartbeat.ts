import type { LiveSocket } from './live-socket.ts';

/** Interval of pings; a socket ends after two without a pong. */
const PING_INTERVAL_MS = 30_000;
/** Groups that are pinged one after the other, to spread the load over the interval. */
const GROUPS = 30;

/** Pings each socket once per interval. */
export class Heartbeat {
  readonly #groups = Array.from({ length: GROUPS }, () => new Set<LiveSocket>());
  #current = 0;
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  start(): void {
    this.#timer = setInterval(() => {
      this.#current = (this.#current + 1) % GROUPS;
      for (const socket of this.#groups[this.#current] as Set<LiveSocket>) socket.ping();
    }, PING_INTERVAL_MS / GROUPS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Pings a socket until it is gone; sockets that come together go into different groups. */
  add(socket: LiveSocket): void {
    const group = this.#groups[this.#next] as Set<LiveSocket>;
    this.#next = (this.#next + 1) % GROUPS;
    group.add(socket);
    socket.onGone(() => group.delete(socket));
  }
}
