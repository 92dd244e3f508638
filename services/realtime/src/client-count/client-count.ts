import type { Logger } from '@latchkey/kit/log/logger';
import { type AccountChange, LIVE_CLIENTS } from '@latchkey/kit/redis/account-changes';
import { addLiveClients, openSamplesAt } from '@latchkey/kit/redis/live-clients';
import type { Redis } from '@latchkey/kit/redis/redis';
import type { AppsClient } from '../event/apps-client.ts';
import type { Hub } from '../hub/hub.ts';
import { HUBS_PER_CALL, inBatches } from '../hub/reconciler.ts';

/** Interval at which a changed number of clients is noticed, in milliseconds. */
export const COUNTING_INTERVAL_MS = 500;

/** Clients of this node, or the differences between two times, by hub. */
type Counts = ReadonlyMap<Hub, number>;

/**
 * Returns a sweep that counts the live clients of each sample, and corrects the sample when clients
 * come or go. It announces the changes, and reports each new maximum of the day to apps. Without
 * Redis, each node counts for itself.
 */
export function createClientCount(options: {
  readonly hubs: { all(): Iterable<Hub> };
  readonly apps: Pick<AppsClient, 'recordClients'>;
  readonly redis: Pick<Redis, 'eval'>;
  readonly announce: (accountId: string, change: AccountChange) => void;
  readonly logger: Logger;
  readonly clock?: () => Date;
}) {
  const { hubs, apps, redis, announce, logger, clock = () => new Date() } = options;
  const reported = new WeakMap<Hub, { readonly day: string; readonly clients: number }>();
  /** Clients of this node that the open samples have. */
  let last: Counts = new Map();
  let lastSamples: readonly number[] = [];

  /** Returns the sums of all nodes for what differs, or those of this node. */
  const addTo = async (sample: number, differences: Counts): Promise<Counts> => {
    const sums = new Map<Hub, number>();
    for (const batch of inBatches([...differences], HUBS_PER_CALL)) {
      const counts = batch.map(([hub, clients]) => [hub.applicationId, clients] as const);
      const added = await addLiveClients(redis, sample, counts).catch((err: unknown) => {
        logger.debug({ err }, 'live clients not counted with those of other nodes');
        return batch.map(([hub]) => hub.sockets.size);
      });
      for (const [i, [hub]] of batch.entries()) sums.set(hub, added[i] ?? 0);
    }
    return sums;
  };

  const report = async (sums: Counts, day: string): Promise<void> => {
    const risen = [...sums].filter(([hub, clients]) => {
      const before = reported.get(hub);
      return clients > (before?.day === day ? before.clients : 0);
    });
    for (const batch of inBatches(risen, HUBS_PER_CALL)) {
      await apps.recordClients(batch.map(([hub, clients]) => [hub.applicationId, clients]));
      for (const [hub, clients] of batch) reported.set(hub, { day, clients });
    }
  };

  return async (): Promise<void> => {
    const at = clock();
    // Also those that have closed since then.
    const now: Counts = new Map([...last.keys(), ...hubs.all()].map((hub) => [hub, hub.sockets.size]));
    const samples = openSamplesAt(at);
    // Only the first count of a sample is one that all nodes make at the same time.
    const isFirst = !lastSamples.includes(Math.max(...samples));
    let sums: Counts = new Map();
    for (const sample of samples)
      sums = await addTo(sample, findDifferences(lastSamples.includes(sample) ? last : new Map(), now));
    for (const { accountId, applicationId } of findDifferences(last, now).keys())
      announce(accountId, { kind: LIVE_CLIENTS, applicationId });
    [last, lastSamples] = [findDifferences(new Map(), now), samples];
    if (isFirst) await report(sums, at.toISOString().slice(0, 10));
  };
}

/** Numbers of clients to add, other than 0. */
function findDifferences(before: Counts, now: Counts): Counts {
  const differences = [...now].map(([hub, clients]) => [hub, clients - (before.get(hub) ?? 0)] as const);
  return new Map(differences.filter(([, clients]) => clients !== 0));
}
