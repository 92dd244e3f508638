import { Redis } from 'ioredis';
import type { Logger } from './logger.ts';

export { Redis } from 'ioredis';

/** How long Redis may leave commands unanswered until its connection is given up, in milliseconds. */
const SILENCE_MS_MAX = 1_000;

/** What a connection may have otherwise. */
export interface FailFastOptions {
  /** How long a command may go unanswered, in milliseconds; 250 unless set. */
  readonly commandTimeoutMs?: number;
  /** Longest wait between two tries to reconnect, in milliseconds; 2,000 unless set. */
  readonly reconnectDelayMsMax?: number;
  /** What Redis lists the connection as. */
  readonly name?: string;
}

/**
 * A Redis connection that fails fast: a command that is not answered in time, or that comes while the connection is down, is
 * rejected and never queued. For limits, epochs and adding to queues, which have a fallback.
 */
export function createFailFastRedis(url: string, logger: Logger, options: FailFastOptions = {}): Redis {
  const { commandTimeoutMs = 250, reconnectDelayMsMax = 2_000, name } = options;
  const redis = new Redis(url, {
    commandTimeout: commandTimeoutMs,
    // A connection that swallows commands is given up, or it would never be replaced.
    socketTimeout: SILENCE_MS_MAX,
    connectTimeout: 2_000,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 100, reconnectDelayMsMax),
    lazyConnect: true,
    ...(name && { connectionName: name }),
  });
  createOutageLog(logger).watch(redis);
  return redis;
}

/** Tells of an outage once, however many connections it breaks and however often they try again. */
export interface OutageLog {
  /** Watches a connection from now on. */
  watch(redis: Redis): void;
  /** Whether an outage was told of that is not over yet. */
  isDown(): boolean;
}

/** Logs when the first of the connections that it watches fails, and when all of them are ready again. */
export function createOutageLog(logger: Logger): OutageLog {
  const watched: Redis[] = [];
  let down = false;
  return {
    watch(redis) {
      watched.push(redis);
      const connection = redis.options.connectionName ?? undefined;
      redis.on('error', (err) => {
        if (!down) logger.warn({ err, connection }, 'redis is unreachable');
        down = true;
      });
      redis.on('ready', () => {
        if (!down || watched.some(({ status }) => status !== 'ready')) return;
        logger.info({ connection }, 'redis is reachable again');
        down = false;
      });
    },
    isDown: () => down,
  };
}

/** Connects without failing when Redis is down: the connection goes on trying behind the scenes. */
export async function connectInBackground(redis: Redis): Promise<void> {
  await redis.connect().catch(() => undefined);
}
