import type { Logger } from '@latchkey/kit/log/logger';
import { sampleAt } from '@latchkey/kit/redis/live-clients';
import type { AppsClient } from '../event/apps-client.ts';
import type { Hub } from '../hub/hub.ts';
import { HUBS_PER_CALL, inBatches } from '../hub/reconciler.ts';

/** Interval at which a new sample is noticed. */
export const SAMPLING_INTERVAL_MS = 1_000;

type Counts = ReadonlyArray<readonly [applicationId: string, clients: number]>;

/**
 * Returns a sweep that counts the live clients of each sample, and reports to apps what is more
 * than before on the same day. Without Redis, each node counts for itself.
 */
export function createClientCount(options: {
  readonly hubs: { all(): Iterable<Hub> };
  readonly apps: Pick<AppsClient, 'recordClients'>;
  /** Adds to the sample of all nodes; returns the sums. */
  readonly add: (sample: number, counts: Counts) => Promise<readonly number[]>;
  readonly logger: Logger;
  readonly clock?: () => Date;
}) {
  const { hubs, apps, add, logger, clock = () => new Date() } = options;
  const reported = new WeakMap<Hub, { readonly day: string; readonly clients: number }>();
  let last = 0;
  return async (): Promise<void> => {
    const now = clock();
    const sample = sampleAt(now);
    if (sample === last) return;
    last = sample;
    const day = now.toISOString().slice(0, 10);
    for (const batch of inBatches([...hubs.all()], HUBS_PER_CALL)) {
      const counts = batch.map((hub) => [hub.applicationId, hub.sockets.size] as const);
      const sums = await add(sample, counts).catch((err: unknown) => {
        logger.debug({ err }, 'live clients not counted with those of other nodes');
        return counts.map(([, clients]) => clients);
      });
      const most = batch.map((hub, i) => ({ hub, clients: sums[i] ?? 0 }));
      const risen = most.filter(({ hub, clients }) => {
        const before = reported.get(hub);
        return clients > (before?.day === day ? before.clients : 0);
      });
      if (risen.length === 0) continue;
      await apps.recordClients(risen.map(({ hub, clients }) => [hub.applicationId, clients]));
      for (const { hub, clients } of risen) reported.set(hub, { day, clients });
    }
  };
}
