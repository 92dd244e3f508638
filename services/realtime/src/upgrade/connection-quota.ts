import type { ReachedLimit } from '@latchkey/kit/errors/errors';
import { ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';
import { LRUCache } from 'lru-cache';
import { errors } from '../errors.ts';

const RETRY_MS = 10_000;

/** Limits the sockets of a node, those that are being opened included. */
export class ConnectionQuota {
  readonly #all: ConcurrencyLimit;
  readonly #byNetwork: ConcurrencyLimit;
  readonly #byApplication: ConcurrencyLimit;

  constructor({ total, perNetwork, perApplication }: Readonly<Record<'total' | 'perNetwork' | 'perApplication', number>>) {
    this.#all = new ConcurrencyLimit(total);
    this.#byNetwork = new ConcurrencyLimit(perNetwork);
    this.#byApplication = new ConcurrencyLimit(perApplication);
  }

  /** Counts a socket of a network until the functions are called; throws over the limit. */
  acquire(network: string): Array<() => void> {
    const releaseAny = this.#all.acquire();
    if (!releaseAny) throw errors.node_full(describe('sockets', this.#all.max));
    const release = this.#byNetwork.acquire(network);
    if (release) return [releaseAny, release];
    releaseAny();
    throw errors.too_many_sockets_of_address(describe('sockets-per-address', this.#byNetwork.max));
  }

  acquireFor(applicationId: string): () => void {
    const release = this.#byApplication.acquire(applicationId);
    if (release) return release;
    throw errors.too_many_sockets_of_application(describe('sockets-per-application', this.#byApplication.max));
  }
}

const WINDOW_MS = 60_000;
const NETWORKS_MAX = 100_000;

/** Rate limit on the rejected upgrades of a network, which bounds how many keys it can try. */
export class RejectionLimit {
  readonly #max: number;
  /** Counts of a minute that begins with the first rejection. */
  readonly #counts = new LRUCache<string, number>({ max: NETWORKS_MAX, ttl: WINDOW_MS });

  constructor(max: number) {
    this.#max = max;
  }

  /** Throws `too_many_rejections` for a network over the limit. */
  check(network: string): void {
    if ((this.#counts.get(network) ?? 0) < this.#max) return;
    const times = { windowMs: WINDOW_MS, retryMs: this.#counts.getRemainingTTL(network) };
    throw errors.too_many_rejections({ policy: 'refused-upgrades', limit: this.#max, ...times });
  }

  count(network: string): void {
    this.#counts.set(network, (this.#counts.get(network) ?? 0) + 1, { noUpdateTTL: true });
  }
}

function describe(policy: string, limit: number): ReachedLimit {
  return { policy, limit, windowMs: 0, retryMs: RETRY_MS };
}
