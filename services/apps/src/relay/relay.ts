import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@latchkey/kit/logger';
import { BATCH_MAX, type Delivery, deliverBatch } from './delivery.ts';
import { hasUndelivered } from './relay.store.ts';
import { watchOutbox } from './relay-metrics.ts';

/** Takes events from the log to the queues, behind the scenes. */
export interface Relay {
  start(): void;
  /** Delivers at once what has been committed, unless deliveries are failing. */
  wake(): void;
  /** Delivers at once also when deliveries have been failing. */
  retry(): void;
  /** Resolves when the delivery under way has ended, which takes a few seconds at most. */
  stop(): Promise<void>;
}

/** How often the log is looked at for what nobody was woken for: events of processes that have died. */
const POLL_INTERVAL_MS = 1_000;
/** Waits after failures, growing from the first to the second. */
const BACKOFF_MS_MIN = 50;
const BACKOFF_MS_MAX = 1_000;

/** A relay of one process; any number of them may share a log. */
export function createRelay(delivery: Delivery, logger: Logger): Relay {
  let stopping = false;
  let running: Promise<void> | undefined;
  /** Whether somebody called since the last look. */
  let woken = false;
  let failures = 0;
  let pause = new AbortController();
  let unwatch = () => {};

  async function run(): Promise<void> {
    while (!stopping) {
      const look = woken;
      woken = false;
      try {
        await deliverAll(delivery, look, () => stopping);
        if (failures > 0) logger.info('events are delivered again');
        failures = 0;
      } catch (err) {
        if (failures === 0) logger.warn({ err }, 'events wait to be delivered');
        failures += 1;
      }
      if (!woken && !stopping) await rest();
    }
  }

  async function rest(): Promise<void> {
    const waitMs = failures === 0 ? POLL_INTERVAL_MS : Math.min(BACKOFF_MS_MIN * 2 ** (failures - 1), BACKOFF_MS_MAX);
    pause = new AbortController();
    await delay(waitMs, undefined, { signal: pause.signal }).catch(() => undefined);
  }

  function retry(): void {
    woken = true;
    pause.abort();
  }

  return {
    start() {
      if (running) return;
      running = run();
      unwatch = watchOutbox(delivery.db);
    },
    wake() {
      // While deliveries fail, it is the growing wait that says when to try again.
      if (failures === 0) retry();
    },
    retry,
    async stop() {
      stopping = true;
      unwatch();
      pause.abort();
      await running;
    },
  };
}

/** Delivers until nothing is left. */
async function deliverAll(delivery: Delivery, isKnown: boolean, isStopping: () => boolean): Promise<void> {
  if (!isKnown && !(await hasUndelivered(delivery.db))) return;
  while ((await deliverBatch(delivery)) === BATCH_MAX && !isStopping());
}
