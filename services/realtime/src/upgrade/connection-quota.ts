import type { ReachedLimit } from '@latchkey/kit/errors/errors';
import { acquireAll, ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';
import { LRUCache } from 'lru-cache';
import { errors } from '../errors.ts';

const RETRY_MS = 10_000;

export type ConnectionQuota = ReturnType<typeof createConnectionQuota>;

/** Limits the sockets of a node, those that are being opened included. */
export function createConnectionQuota(max: Readonly<Record<'total' | 'perNetwork' | 'perApplication', number>>) {
  const all = new ConcurrencyLimit(max.total);
  const ofNetwork = new ConcurrencyLimit(max.perNetwork);
  const ofApplication = new ConcurrencyLimit(max.perApplication);
  return {
    /**
     * Counts a socket of a network. The function that it returns releases it; throws over the
     * limit.
     */
    acquire: (network: string) =>
      acquireAll(
        [all, '', () => errors.node_full(describe('sockets', all.max))],
        [ofNetwork, network, () => errors.too_many_sockets_of_address(describe('sockets-per-address', ofNetwork.max))],
      ),
    acquireFor: (applicationId: string) =>
      acquireAll([
        ofApplication,
        applicationId,
        () => errors.too_many_sockets_of_application(describe('sockets-per-application', ofApplication.max)),
      ]),
  };
}

const WINDOW_MS = 60_000;
const NETWORKS_MAX = 100_000;

export type RejectionLimit = ReturnType<typeof createRejectionLimit>;

/** Rate limit on the rejected upgrades of a network, which bounds how many keys it can try. */
export function createRejectionLimit(max: number) {
  /** Counts of a minute that begins with the first rejection. */
  const counts = new LRUCache<string, number>({ max: NETWORKS_MAX, ttl: WINDOW_MS });
  return {
    /** Throws `too_many_rejections` for a network over the limit. */
    check(network: string): void {
      if ((counts.get(network) ?? 0) < max) return;
      const times = { windowMs: WINDOW_MS, retryMs: counts.getRemainingTTL(network) };
      throw errors.too_many_rejections({ policy: 'refused-upgrades', limit: max, ...times });
    },
    count: (network: string) => void counts.set(network, (counts.get(network) ?? 0) + 1, { noUpdateTTL: true }),
  };
}

function describe(policy: string, limit: number): ReachedLimit {
  return { policy, limit, windowMs: 0, retryMs: RETRY_MS };
}
