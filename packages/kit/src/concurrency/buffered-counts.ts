import type { Logger } from '../log/logger.ts';
import { stopAll } from '../process/lifecycle.ts';
import { createSweeper } from '../sweeper/sweeper.ts';

/** Keys in memory; beyond them, counts of other keys are lost until the next delivery. */
const KEYS_MAX = 50_000;
const BATCH_MAX = 500;
const INTERVAL_MS = 10_000;

type Counts<N extends string> = Partial<Record<N, number>>;

export type BufferedCounts<N extends string> = Pick<ReturnType<typeof createBufferedCounts<string, N>>, 'add'>;

/**
 * Counts in memory that are delivered in batches every 10 s and at the stop, so that counting a
 * request costs no write. A killed process loses those since its last delivery. A failed batch is
 * delivered again, which counts twice where only the response was lost.
 *
 * @param options `name` of the sweep in metrics; `key` is the property that names what is counted
 */
export function createBufferedCounts<K extends string, N extends string>(options: {
  readonly name: string;
  readonly key: K;
  readonly logger: Logger;
  readonly deliver: (batch: Array<Record<K, string> & Counts<N>>) => Promise<unknown>;
  readonly keysMax?: number;
}) {
  const { name, key: keyName, logger, deliver, keysMax = KEYS_MAX } = options;
  const keys = new Map<string, Counts<N>>();
  const add = (key: string, count: N, by = 1): void => {
    const counts = keys.get(key);
    if (counts) counts[count] = (counts[count] ?? 0) + by;
    else if (keys.size < keysMax) keys.set(key, { [count]: by } as Counts<N>);
  };
  const deliverAll = async () => {
    // Keys that are counted meanwhile belong to the next delivery.
    for (let left = keys.size; left > 0; left -= BATCH_MAX) {
      const batch = [...keys].slice(0, BATCH_MAX);
      for (const [key] of batch) keys.delete(key);
      try {
        await deliver(batch.map(([key, counts]) => ({ [keyName]: key, ...counts }) as Record<K, string> & Counts<N>));
      } catch (err) {
        for (const [key, counts] of batch)
          for (const [count, by] of Object.entries(counts) as Array<[N, number]>) add(key, count, by);
        throw err;
      }
    }
  };
  const sweeper = createSweeper({ intervalMs: INTERVAL_MS, logger, sweeps: { [name]: deliverAll } });
  return {
    add,
    start: sweeper.start,
    stop: () =>
      stopAll(sweeper.stop, () =>
        deliverAll().catch((err: unknown) => logger.warn({ err, name }, 'counts since the last delivery are lost')),
      ),
  };
}
