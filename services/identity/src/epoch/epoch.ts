import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@latchkey/kit/logger';
import type { Redis } from '@latchkey/kit/redis';

/** The longest that a caller may reuse a principal, in milliseconds (authentication.proto, `AuthenticateResponse.epoch_key`). */
const PRINCIPAL_MAX_AGE_MS = 3_000;
const EPOCH_LIFETIME_MS = 60_000;
const EPOCH_BYTES = 12;
/** Most epochs ended by one command, so that none holds Redis up for long. */
const KEYS_AT_ONCE = 1_000;

/** The Redis key of an epoch and the value it held. Both are empty when Redis did not answer. */
export interface Epoch {
  readonly key: string;
  readonly value: string;
}

/**
 * One epoch per credential in Redis, random and gone after a minute. A principal that was read after its epoch is out of date as soon as
 * the epoch's key is gone or holds another value, so that removing it takes the principal back from every gateway (architecture 3).
 */
export interface Epochs {
  /** The epoch, made where there was none. It must be read before what it guards. Never rejects. */
  read(key: string): Promise<Epoch>;
  /**
   * Takes every principal of the credentials back. It must follow the commit of the change. Where Redis can't be told, it resolves only when
   * every principal has grown too old to be reused. Never rejects.
   */
  end(...keys: string[]): Promise<void>;
}

/** What {@link createEpochs} works with. */
export interface EpochsOptions {
  readonly redis: Redis;
  readonly random: (bytes: number) => Buffer;
  readonly logger: Logger;
  /** Waits for so many milliseconds. */
  readonly wait?: (ms: number) => Promise<unknown>;
}

/** `SET` with both `NX` and `GET` would need Redis 7, and a supported Ubuntu still has 6. */
const READ_SCRIPT = `
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
return redis.call('GET', KEYS[1])`;

/** Epochs that live in one Redis for all instances and gateways. */
export function createEpochs({ redis, random, logger, wait = delay }: EpochsOptions): Epochs {
  return {
    async read(key) {
      const fresh = random(EPOCH_BYTES).toString('base64url');
      try {
        const value = await redis.eval(READ_SCRIPT, 1, key, fresh, EPOCH_LIFETIME_MS);
        return { key, value: String(value) };
      } catch (err) {
        // One line a call would flood the log, and the connection reports its own end.
        logger.debug({ err }, 'epoch not read');
        return { key: '', value: '' };
      }
    },
    async end(...keys) {
      try {
        for (let i = 0; i < keys.length; i += KEYS_AT_ONCE) await redis.del(keys.slice(i, i + KEYS_AT_ONCE));
      } catch (err) {
        logger.warn({ err, waitMs: PRINCIPAL_MAX_AGE_MS }, 'epoch not ended, waiting for principals to grow old');
        await wait(PRINCIPAL_MAX_AGE_MS);
      }
    },
  };
}

/** Epochs where no Redis is known to tell: each end waits until every principal has grown too old. */
export function createEpochsWithoutRedis(wait: (ms: number) => Promise<unknown>): Epochs {
  return {
    read: async () => ({ key: '', value: '' }),
    end: async () => void (await wait(PRINCIPAL_MAX_AGE_MS)),
  };
}

/** Name of a management key's epoch. */
export function apiKeyEpoch(publicId: string): string {
  return `latchkey:epoch:api_key:${publicId}`;
}

/** Name of a session's epoch. The hash that sessions are stored under is hashed again, so that Redis can't be used to find one. */
export function sessionEpoch(tokenHash: Buffer): string {
  return `latchkey:epoch:session:${createHash('sha256').update(tokenHash).digest('base64url')}`;
}
