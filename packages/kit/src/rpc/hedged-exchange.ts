import type { Pool } from 'undici';
import { type LeanAnswer, LeanExchange, type LeanRequest } from './lean-exchange.ts';

/** How long a call may be unanswered before it is sent once more, in milliseconds. Nearly all are answered in a hundredth of that. */
const HEDGE_AFTER_MS = 1_000;

/** Most connections that a call is sent on: of two processes behind a balancer, every second one may lead to the one that hangs. */
const EXCHANGES_MAX = 4;

/** Most exchanges beside the first ones, of all calls of a pool: where everything is slow, as when the database is, they would only add to it. */
const HEDGES_MAX = 8;

/** How many exchanges of a pool are under way beside the first ones of their calls. */
export interface Hedges {
  count: number;
}

/**
 * An exchange that is begun again on another connection each second that it is not answered: behind a balancer another process takes that one, and
 * a process that hangs costs a second instead of the call. The first answer counts, and the other exchanges end with their connections.
 */
export class HedgedExchange {
  readonly #resolve: (answer: LeanAnswer) => void;
  readonly #reject: (err: unknown) => void;
  readonly #hedges: Hedges;
  readonly #exchanges: LeanExchange[] = [];
  #timer: NodeJS.Timeout | undefined;
  #failed = 0;
  #isOver = false;

  constructor(hedges: Hedges, resolve: (answer: LeanAnswer) => void, reject: (err: unknown) => void) {
    this.#hedges = hedges;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** @param request what is to be sent; asked again for each exchange, as the time that is left is in it */
  send(pool: Pool, request: () => LeanRequest): void {
    this.#begin(pool, request);
    // One that has failed at once has told so by now.
    if (!this.#isOver) this.#timer = setTimeout(() => this.#hedge(pool, request), HEDGE_AFTER_MS);
  }

  /** Whether it was sent, in part at least. */
  get isSent(): boolean {
    return this.#exchanges.some(({ isSent }) => isSent);
  }

  /** Whether the peer was heard at all. */
  get isAnswered(): boolean {
    return this.#exchanges.some(({ isAnswered }) => isAnswered);
  }

  /** Ends it from our side. */
  abort(reason: Error): void {
    for (const exchange of this.#exchanges) exchange.abort(reason);
  }

  #hedge(pool: Pool, request: () => LeanRequest): void {
    if (this.isAnswered) return;
    if (this.#hedges.count < HEDGES_MAX) {
      this.#hedges.count += 1;
      this.#begin(pool, request);
    }
    if (!this.#isOver && this.#exchanges.length < EXCHANGES_MAX) {
      this.#timer = setTimeout(() => this.#hedge(pool, request), HEDGE_AFTER_MS);
    }
  }

  #begin(pool: Pool, request: () => LeanRequest): void {
    const exchange = new LeanExchange(
      (answer) => {
        this.#end();
        this.#resolve(answer);
        for (const other of this.#exchanges) if (other !== exchange) other.abort(new Error('another connection was faster'));
      },
      (err) => {
        this.#failed += 1;
        // Another one may be answered yet.
        if (this.#failed < this.#exchanges.length) return;
        this.#end();
        this.#reject(err);
      },
    );
    this.#exchanges.push(exchange);
    exchange.send(pool, request());
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#hedges.count -= this.#exchanges.length - 1;
  }
}
