import { commonErrors, type ReachedLimit } from '@latchkey/kit/errors/errors';
import { ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';
import { errors } from '../errors.ts';

/** Upgrades under way at most, where they are fast and where they are slow. */
export const UPGRADES_MAX = 4_000;
const UPGRADES_MIN = 1_000;
export const UPGRADES_PER_NETWORK = 1_000;
/** Longest wait of an upgrade that is begun: half of its deadline. */
const WAIT_MS_MAX = 2_000;
/** Time of one upgrade before any was measured, and the weight of each measurement. */
const UPGRADE_MS = 0.5;
const WEIGHT = 0.02;
/** Upgrades while the apps service does not respond would look slow for long. */
const UPGRADE_MS_MAX = 20;
/** Half of the time is left to clients that come for the first time. */
const RETURN_SHARE = 0.5;
const RETRY_MS_MAX = 60_000;

interface BacklogOptions {
  readonly now: () => number;
  readonly random: () => number;
}

/**
 * Limits upgrades to those that end before their deadline, by the time that the last ones took, and
 * reports to each rejected client when there is room: one after the other, at random times.
 */
export class UpgradeBacklog {
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #ofNetwork = new ConcurrencyLimit(UPGRADES_PER_NETWORK);
  #count = 0;
  #upgradeMs = UPGRADE_MS;
  /** Time when the last upgrade ended, or the first of the current ones began. */
  #lastAt = 0;
  /** Time until which rejected clients have a time to return. */
  #bookedUntil = 0;

  constructor({ now = () => performance.now(), random = Math.random }: Partial<BacklogOptions> = {}) {
    this.#now = now;
    this.#random = random;
  }

  /** Upgrades that may be under way. */
  get max(): number {
    return Math.max(UPGRADES_MIN, Math.min(UPGRADES_MAX, Math.ceil(WAIT_MS_MAX / this.#upgradeMs)));
  }

  /**
   * Begins an upgrade, which ends when the returned function is called.
   *
   * @throws `node_busy`; `queue_full` for a network with too many upgrades
   */
  enter(network: string): () => void {
    if (this.#count >= this.max) throw errors.node_busy(this.#describe('waiting-sockets', this.max));
    const release = this.#ofNetwork.acquire(network);
    if (!release) throw commonErrors.queue_full(this.#describe('waiting-requests', UPGRADES_PER_NETWORK));
    if (this.#count === 0) this.#lastAt = this.#now();
    this.#count += 1;
    return () => {
      release();
      this.#leave();
    };
  }

  #leave(): void {
    const now = this.#now();
    const tookMs = Math.min(UPGRADE_MS_MAX, now - this.#lastAt);
    this.#lastAt = now;
    // Alone, an upgrade takes the time of its calls, of which many run at once.
    if (this.#count > 1) this.#upgradeMs += (tookMs - this.#upgradeMs) * WEIGHT;
    this.#count -= 1;
  }

  #describe(policy: string, limit: number): ReachedLimit {
    const now = this.#now();
    const free = now + this.#count * this.#upgradeMs;
    this.#bookedUntil = Math.min(now + RETRY_MS_MAX, Math.max(free, this.#bookedUntil) + this.#upgradeMs / RETURN_SHARE);
    // The header has whole seconds.
    const retryMs = this.#bookedUntil - now + this.#random() * 1_000;
    return { policy, limit, windowMs: 0, retryMs };
  }
}
