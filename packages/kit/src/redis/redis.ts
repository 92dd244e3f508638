import { Redis } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import { Gauge } from '../telemetry/metrics.ts';

export { Redis } from 'ioredis';

/**
 * How long Redis may leave commands unanswered before its connection is replaced, in milliseconds.
 */
const SILENCE_MS_MAX = 1_000;

/** Options of {@link createFailFastRedis}. */
export interface FailFastOptions {
  /** Time limit of a command, in milliseconds; 250 unless set. */
  readonly commandTimeoutMs?: number;
  /** Longest wait between two attempts to reconnect, in milliseconds; 2,000 unless set. */
  readonly reconnectDelayMsMax?: number;
  /** Name of the connection in Redis. */
  readonly name?: string;
}

/**
 * Creates a Redis connection that fails fast: a command that times out, or that comes while the
 * connection is down, is rejected and never queued. For limits, epochs and queue producers, which
 * have a fallback (promise R9).
 */
export function createFailFastRedis(url: string, logger: Logger, options: FailFastOptions = {}): Redis {
  const { commandTimeoutMs = 250, reconnectDelayMsMax = 2_000, name } = options;
  const redis = new Redis(url, {
    commandTimeout: commandTimeoutMs,
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

const connections = new Gauge({
  name: 'latchkey_redis_connections',
  help: 'Connections to Redis, by what they are for and state: up or down.',
  labels: ['connection', 'state'],
});

/** Logs each outage once, however many connections it breaks. */
export interface OutageLog {
  watch(redis: Redis): void;
  /** Whether an outage has been logged that is not over yet. */
  isDown(): boolean;
}

const UNREACHABLE = 'redis is unreachable';
const REFUSED = 'redis refuses the user or the password of REDIS_URL';

/** Redis' errors for wrong credentials and missing rights. */
const REFUSAL = /^(WRONGPASS|NOAUTH|NOPERM) /;

/** Logs when the first of the watched connections fails, and when all of them are ready again. */
export function createOutageLog(logger: Logger): OutageLog {
  const watched: Redis[] = [];
  let down: string | undefined;
  return {
    watch(redis) {
      watched.push(redis);
      const { connectionName: connection = 'other' } = redis.options;
      const unwatch = connections.watch(() =>
        (['up', 'down'] as const).map((state) => [
          Number((redis.status === 'ready') === (state === 'up')),
          `${connection}`,
          state,
        ]),
      );
      // A connection that is closed for good is no outage.
      redis.on('end', unwatch);
      redis.on('error', (err) => {
        // Between two refusals ioredis reports that the connection closed, which is no news.
        const kind = REFUSAL.test(err.message) ? REFUSED : UNREACHABLE;
        if (down === kind || down === REFUSED) return;
        logger.warn({ err, connection }, kind);
        down = kind;
      });
      redis.on('ready', () => {
        if (down === undefined || watched.some(({ status }) => status !== 'ready')) return;
        logger.info({ connection }, 'redis is reachable again');
        down = undefined;
      });
    },
    isDown: () => down !== undefined,
  };
}

/** Time limit for connecting, and for the command after it, in milliseconds. */
const ACCESS_MS_MAX = 2_000;

/**
 * Checks the user and the password of a Redis URL at start. A Redis that is down passes: the
 * service runs without it until it returns.
 *
 * @throws Error where Redis refuses; the message holds no password
 */
export async function checkRedisAccess(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: ACCESS_MS_MAX,
    commandTimeout: ACCESS_MS_MAX,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    // The ready check needs more rights than the service does.
    enableReadyCheck: false,
  });
  let refusal: string | undefined;
  const onError = ({ message }: Error) => {
    if (REFUSAL.test(message)) refusal ??= message;
  };
  redis.on('error', onError);
  await redis
    .connect()
    .then(() => redis.ping(), onError)
    .catch(onError);
  redis.disconnect();
  if (refusal !== undefined) throw new Error(`${REFUSED}, at ${new URL(url).host}: ${refusal}`);
}

/** Connects without failing when Redis is down: the connection retries in the background. */
export async function connectInBackground(redis: Redis): Promise<void> {
  await redis.connect().catch(() => undefined);
}

/** Options of {@link createSubscriber}. */
export interface SubscriberOptions {
  /** Name of the connection in Redis. */
  readonly name: string;
  /** Called whenever the connection is ready; the caller subscribes then. */
  readonly onReady: () => void;
}

const SUBSCRIBER_RECONNECT_DELAY_MS_MAX = 500;
const PING_INTERVAL_MS = 5_000;
/**
 * Longest wait for the response to a command, a ping among them, before the connection is replaced.
 */
const SUBSCRIBER_SILENCE_MS_MAX = 4_000;

/**
 * Creates a connection for pub/sub; connect it with {@link connectInBackground}. Nothing is queued
 * while Redis is down, and subscriptions end with their connection. Pings detect a frozen Redis or
 * a
 * cut network within 10 s. `disconnect()` closes it immediately, whatever state Redis is in.
 */
export function createSubscriber(url: string, logger: Logger, { name, onReady }: SubscriberOptions): Redis {
  const redis = new Redis(url, {
    connectionName: name,
    lazyConnect: true,
    connectTimeout: 2_000,
    socketTimeout: SUBSCRIBER_SILENCE_MS_MAX,
    commandTimeout: SUBSCRIBER_SILENCE_MS_MAX,
    // The peer of a frozen Redis never learns that the connection ended.
    disconnectTimeout: 100,
    enableOfflineQueue: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 100, SUBSCRIBER_RECONNECT_DELAY_MS_MAX),
  });
  createOutageLog(logger).watch(redis);
  let pings: NodeJS.Timeout | undefined;
  redis.on('close', () => clearInterval(pings));
  redis.on('ready', () => {
    clearInterval(pings);
    pings = setInterval(() => void redis.ping().catch(() => undefined), PING_INTERVAL_MS);
    onReady();
  });
  return redis;
}
