import { Redis } from 'ioredis';
import type { Logger } from './logger.ts';

export type { Redis } from 'ioredis';

/** How long Redis may leave commands unanswered until its connection is given up, in milliseconds. */
const SILENCE_MS_MAX = 1_000;

/**
 * A Redis connection that fails fast: a command that is not answered in time, or that comes while the connection is down, is
 * rejected and never queued. For limits and epochs, which have a fallback. Reconnecting waits 2 s at most.
 */
export function createFailFastRedis(url: string, logger: Logger, commandTimeoutMs = 250): Redis {
  const redis = new Redis(url, {
    commandTimeout: commandTimeoutMs,
    // A connection that swallows commands is given up, or it would never be replaced.
    socketTimeout: SILENCE_MS_MAX,
    connectTimeout: 2_000,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 100, 2_000),
    lazyConnect: true,
  });
  let down = false;
  redis.on('error', (err) => {
    if (!down) logger.warn({ err }, 'redis is unreachable');
    down = true;
  });
  redis.on('ready', () => {
    if (down) logger.info('redis is reachable again');
    down = false;
  });
  return redis;
}

/** Connects without failing when Redis is down: the connection goes on trying behind the scenes. */
export async function connectInBackground(redis: Redis): Promise<void> {
  await redis.connect().catch(() => undefined);
}
