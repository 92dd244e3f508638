import { Redis } from 'ioredis';
import type { OutageLog } from './redis.ts';

/** A connection of a worker that waits for jobs is silent for up to 10 s by right; one that is silent for longer is replaced, in milliseconds. */
const SILENCE_MS_MAX = 15_000;
const RECONNECT_DELAY_MS_MAX = 1_000;

/**
 * The connection of a worker. BullMQ makes a second one of it to wait on, which it keeps to itself; here both are known, so that both are watched
 * and both can be closed whatever BullMQ waits for. Commands wait while Redis is away, as BullMQ demands; it has few of them at a time.
 */
export class WorkerConnection extends Redis {
  readonly #outages: OutageLog;
  readonly #copies: Redis[] = [];

  constructor(url: string, name: string, outages: OutageLog) {
    super(url, {
      connectionName: name,
      maxRetriesPerRequest: null,
      connectTimeout: 2_000,
      socketTimeout: SILENCE_MS_MAX,
      retryStrategy: (attempt) => Math.min(attempt * 100, RECONNECT_DELAY_MS_MAX),
    });
    this.#outages = outages;
    outages.watch(this);
  }

  override duplicate(override?: Parameters<Redis['duplicate']>[0]): Redis {
    const copy = super.duplicate(override);
    this.#outages.watch(copy);
    this.#copies.push(copy);
    return copy;
  }

  /** Closes the connection and its copies at once. */
  disconnectAll(): void {
    for (const redis of [this, ...this.#copies]) redis.disconnect();
  }
}
