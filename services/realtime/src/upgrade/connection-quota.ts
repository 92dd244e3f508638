import { LRUCache } from 'lru-cache';
import { errors } from '../errors.ts';

export interface QuotaLimits {
  readonly total: number;
  readonly perNetwork: number;
  readonly perApplication: number;
}

const RETRY_AFTER_SECONDS = '10';

/** Limits the sockets of a node, those that are being opened included. */
export class ConnectionQuota {
  readonly #limits: QuotaLimits;
  readonly #byNetwork = new Map<string, number>();
  readonly #byApplication = new Map<string, number>();
  #count = 0;

  constructor(limits: QuotaLimits) {
    this.#limits = limits;
  }

  /** Counts a socket of a network until the returned function is called; throws over the limit. */
  acquire(network: string): () => void {
    const { total, perNetwork } = this.#limits;
    if (this.#count >= total) throw errors.node_full({ retryAfterSeconds: RETRY_AFTER_SECONDS });
    if (!increment(this.#byNetwork, network, perNetwork)) {
      throw errors.too_many_sockets_of_address(describe('sockets-per-address', perNetwork));
    }
    this.#count += 1;
    return () => {
      this.#count -= 1;
      decrement(this.#byNetwork, network);
    };
  }

  /** The same for an application, once it is known. */
  acquireFor(applicationId: string): () => void {
    const { perApplication } = this.#limits;
    if (!increment(this.#byApplication, applicationId, perApplication)) {
      throw errors.too_many_sockets_of_application(describe('sockets-per-application', perApplication));
    }
    return () => decrement(this.#byApplication, applicationId);
  }
}

const WINDOW_MS = 60_000;
/** Networks whose rejections are counted. */
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
    const retryAfterSeconds = String(Math.max(1, Math.ceil(this.#counts.getRemainingTTL(network) / 1_000)));
    const windowSeconds = String(WINDOW_MS / 1_000);
    throw errors.too_many_rejections({ ...describe('refused-upgrades', this.#max), windowSeconds, retryAfterSeconds });
  }

  count(network: string): void {
    this.#counts.set(network, (this.#counts.get(network) ?? 0) + 1, { noUpdateTTL: true });
  }
}

function describe(policy: string, limit: number) {
  return { policy, limit: String(limit), windowSeconds: '0', remaining: '0', retryAfterSeconds: RETRY_AFTER_SECONDS };
}

function increment(counts: Map<string, number>, key: string, max: number): boolean {
  const count = counts.get(key) ?? 0;
  if (count >= max) return false;
  counts.set(key, count + 1);
  return true;
}

function decrement(counts: Map<string, number>, key: string): void {
  const count = counts.get(key) ?? 0;
  if (count > 1) counts.set(key, count - 1);
  else counts.delete(key);
}
