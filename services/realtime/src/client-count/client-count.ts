import type { Logger } from '@latchkey/kit/log/logger';
import { type AccountChange, LIVE_CLIENTS } from '@latchkey/kit/redis/account-changes';
import { openSamplesAt } from '@latchkey/kit/redis/live-clients';
import type { AppsClient } from '../event/apps-client.ts';
import type { Hub } from '../hub/hub.ts';
import { HUBS_PER_CALL, inBatches } from '../hub/reconciler.ts';

/** Interval at which a changed number of clients is noticed, in milliseconds. */
export const COUNTING_INTERVAL_MS = 500;

type Counts = ReadonlyArray<readonly [applicationId: string, clients: number]>;

/** The clients of this node at a moment, by application. */
type Snapshot = ReadonlyMap<string, { readonly accountId: string; readonly clients: number }>;

/**
 * Returns a sweep that counts the live clients of each sample, and corrects the sample when clients
 * come or go. It announces the changes, and reports each new maximum of the day to apps. Without
 * Redis, each node counts for itself.
 */
export function createClientCount(options: {
  readonly hubs: { all(): Iterable<Hub> };
  readonly apps: Pick<AppsClient, 'recordClients'>;
  /** Adds to the sample of all nodes; returns the sums. */
  readonly add: (sample: number, counts: Counts) => Promise<readonly number[]>;
  readonly announce: (accountId: string, change: AccountChange) => void;
  readonly logger: Logger;
  readonly clock?: () => Date;
}) {
  const { hubs, apps, add, announce, logger, clock = () => new Date() } = options;
  const reported = new WeakMap<Hub, { readonly day: string; readonly clients: number }>();
  /** Clients of this node that the open samples have. */
  let last: Snapshot = new Map();
  let lastSamples: readonly number[] = [];

  /** Returns the sums of all nodes for what differs, or those of this node. */
  const count = async (sample: number, now: Snapshot): Promise<Map<string, number>> => {
    const sums = new Map<string, number>();
    const differences = findDifferences(lastSamples.includes(sample) ? last : new Map(), now);
    for (const batch of inBatches(differences, HUBS_PER_CALL)) {
      const added = await add(sample, batch).catch((err: unknown) => {
        logger.debug({ err }, 'live clients not counted with those of other nodes');
        return batch.map(([applicationId]) => now.get(applicationId)?.clients ?? 0);
      });
      for (const [i, [applicationId]] of batch.entries()) sums.set(applicationId, added[i] ?? 0);
    }
    return sums;
  };

  return async (): Promise<void> => {
    const at = clock();
    const all = [...hubs.all()];
    const now: Snapshot = new Map(
      all.map(({ applicationId, accountId, sockets }) => [applicationId, { accountId, clients: sockets.size }]),
    );
    const samples = openSamplesAt(at);
    // Only the first count of a sample is one that all nodes make at the same time.
    const isFirst = !lastSamples.includes(Math.max(...samples));
    let sums = new Map<string, number>();
    for (const sample of samples) sums = await count(sample, now);
    for (const [applicationId] of findDifferences(last, now)) {
      const { accountId } = now.get(applicationId) ?? last.get(applicationId) ?? {};
      if (accountId !== undefined) announce(accountId, { kind: LIVE_CLIENTS, applicationId });
    }
    [last, lastSamples] = [now, samples];
    if (isFirst) await report(all, sums, at.toISOString().slice(0, 10));
  };

  async function report(all: readonly Hub[], sums: ReadonlyMap<string, number>, day: string): Promise<void> {
    const risen = all.flatMap((hub) => {
      const clients = sums.get(hub.applicationId) ?? 0;
      const before = reported.get(hub);
      return clients > (before?.day === day ? before.clients : 0) ? [{ hub, clients }] : [];
    });
    for (const batch of inBatches(risen, HUBS_PER_CALL)) {
      await apps.recordClients(batch.map(({ hub, clients }) => [hub.applicationId, clients]));
      for (const { hub, clients } of batch) reported.set(hub, { day, clients });
    }
  }
}

/** Numbers of clients to add, by application. */
function findDifferences(before: Snapshot, now: Snapshot): Array<readonly [applicationId: string, clients: number]> {
  const differences: Array<readonly [string, number]> = [];
  for (const [applicationId, { clients }] of now) {
    const difference = clients - (before.get(applicationId)?.clients ?? 0);
    if (difference !== 0) differences.push([applicationId, difference]);
  }
  for (const [applicationId, { clients }] of before) if (!now.has(applicationId)) differences.push([applicationId, -clients]);
  return differences;
}
