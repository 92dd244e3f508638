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

export type UpgradeBacklog = ReturnType<typeof createUpgradeBacklog>;

/**
 * Limits upgrades to those that end before their deadline, by the time that the last ones took, and
 * reports to each rejected client when there is room: one after the other, at random times.
 */
export function createUpgradeBacklog({ now = () => performance.now(), random = Math.random } = {}) {
  const ofNetwork = new ConcurrencyLimit(UPGRADES_PER_NETWORK);
  let count = 0;
  let upgradeMs = UPGRADE_MS;
  /** Time when the last upgrade ended, or the first of the current ones began. */
  let lastAt = 0;
  /** Time until which rejected clients have a time to return. */
  let bookedUntil = 0;
  const getMax = () => Math.max(UPGRADES_MIN, Math.min(UPGRADES_MAX, Math.ceil(WAIT_MS_MAX / upgradeMs)));
  const describe = (policy: string, limit: number): ReachedLimit => {
    const free = now() + count * upgradeMs;
    bookedUntil = Math.min(now() + RETRY_MS_MAX, Math.max(free, bookedUntil) + upgradeMs / RETURN_SHARE);
    // The header has whole seconds.
    return { policy, limit, windowMs: 0, retryMs: bookedUntil - now() + random() * 1_000 };
  };
  const leave = () => {
    const tookMs = Math.min(UPGRADE_MS_MAX, now() - lastAt);
    lastAt = now();
    // Alone, an upgrade takes the time of its calls, of which many run at once.
    if (count > 1) upgradeMs += (tookMs - upgradeMs) * WEIGHT;
    count -= 1;
  };
  return {
    /** Upgrades that may be under way. */
    getMax,
    /**
     * Begins an upgrade, which ends when the returned function is called.
     *
     * @throws `node_busy`; `queue_full` for a network with too many upgrades
     */
    enter(network: string): () => void {
      if (count >= getMax()) throw errors.node_busy(describe('waiting-sockets', getMax()));
      const release = ofNetwork.acquire(network);
      if (!release) throw commonErrors.queue_full(describe('waiting-requests', UPGRADES_PER_NETWORK));
      if (count === 0) lastAt = now();
      count += 1;
      return () => {
        release();
        leave();
      };
    },
  };
}
