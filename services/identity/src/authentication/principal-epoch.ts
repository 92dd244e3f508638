import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { PRINCIPAL_AGE_MS_MAX } from '@latchkey/contract/principal-age';
import type { Logger } from '@latchkey/kit/log/logger';
import type { Redis } from '@latchkey/kit/redis/redis';

const EPOCH_LIFETIME_MS = 60_000;
const EPOCH_BYTES = 12;
/** Keys deleted by one command, so that no command blocks Redis for long. */
const BATCH_MAX = 1_000;

export type Epochs = ReturnType<typeof createEpochs>;

/** `SET` with both `NX` and `GET` would need Redis 7; a supported Ubuntu has 6. */
const READ_SCRIPT = `
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
return redis.call('GET', KEYS[1])`;

/**
 * Epochs: a random value per credential in Redis that expires after a minute. A principal is who a
 * credential authenticates. A gateway may reuse it only while the key holds the value that was read
 * before it: deleting the key invalidates the principal at every gateway. Neither function rejects.
 */
export function createEpochs(
  redis: Pick<Redis, 'eval' | 'del' | 'isCluster'>,
  logger: Logger,
  wait: (ms: number) => Promise<unknown> = delay,
) {
  // In a cluster, keys are on different nodes.
  const remove = (keys: string[]) => (redis.isCluster ? Promise.all(keys.map((key) => redis.del(key))) : redis.del(keys));
  return {
    /**
     * Reads or creates the epoch. Must precede reading what it protects.
     * @returns its Redis key and value; both empty when Redis did not answer
     */
    async read(key: string): Promise<{ readonly key: string; readonly value: string }> {
      const fresh = randomBytes(EPOCH_BYTES).toString('base64url');
      try {
        return { key, value: String(await redis.eval(READ_SCRIPT, 1, key, fresh, EPOCH_LIFETIME_MS)) };
      } catch (err) {
        // Debug: one line a call would flood the log, and the connection logs its own outage.
        logger.debug({ err }, 'epoch not read');
        return { key: '', value: '' };
      }
    },
    /**
     * Call after the commit. Deletes the epochs; if Redis fails, waits until no gateway reuses a
     * cached principal.
     */
    async end(...keys: string[]): Promise<void> {
      try {
        for (let i = 0; i < keys.length; i += BATCH_MAX) await remove(keys.slice(i, i + BATCH_MAX));
      } catch (err) {
        logger.warn({ err, waitMs: PRINCIPAL_AGE_MS_MAX }, 'epoch not ended, waiting until cached principals expire');
        await wait(PRINCIPAL_AGE_MS_MAX);
      }
    },
  };
}

export function apiKeyEpoch(publicId: string): string {
  return `latchkey:epoch:api_key:${publicId}`;
}

/** Redis key of a session's epoch. It is a hash of the stored hash, which Redis must not reveal. */
export function sessionEpoch(tokenHash: Buffer): string {
  return `latchkey:epoch:session:${createHash('sha256').update(tokenHash).digest('base64url')}`;
}
