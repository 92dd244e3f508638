import { Redis } from 'ioredis';
import type { Logger } from './logger.ts';
import { Gauge } from './metrics/instrument.ts';

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

const connections = new Gauge({
  name: 'latchkey_redis_connections',
  help: 'Connections to Redis, by what they are for and state: up or down.',
  labels: ['connection', 'state'],
});

/** Tells of an outage once, however many connections it breaks and however often they try again. */
export interface OutageLog {
  /** Watches a connection from now on. */
  watch(redis: Redis): void;
  /** Whether an outage was told of that is not over yet. */
  isDown(): boolean;
}

const UNREACHABLE = 'redis is unreachable';
const REFUSED = 'redis refuses the user or the password of REDIS_URL';

/** How Redis begins what it says to those whom it does not let in. */
const REFUSAL = /^(WRONGPASS|NOAUTH|NOPERM) /;

/** Logs when the first of the connections that it watches fails, and when all of them are ready again. */
export function createOutageLog(logger: Logger): OutageLog {
  const watched: Redis[] = [];
  let down: string | undefined;
  return {
    watch(redis) {
      watched.push(redis);
      const connection = redis.options.connectionName ?? undefined;
      const unwatch = connections.watch(() => {
        const isUp = redis.status === 'ready';
        return [
          [Number(isUp), connection ?? 'other', 'up'],
          [Number(!isUp), connection ?? 'other', 'down'],
        ];
      });
      // One that is closed for good is no outage.
      redis.on('end', unwatch);
      redis.on('error', (err) => {
        // What refuses is not merely away: nothing but another setting mends it. Between two refusals the connection is closed, which is no news.
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

/** Longest wait for Redis to take a connection, and then to answer on it, in milliseconds. */
const ACCESS_MS_MAX = 2_000;

/**
 * Asks Redis once whether it lets us in. One that is away, or says nothing, is none of its business: who uses Redis goes on without it.
 *
 * @throws Error where Redis answers and refuses; the sentence holds no password
 */
export async function checkRedisAccess(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: ACCESS_MS_MAX,
    commandTimeout: ACCESS_MS_MAX,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    // It asks for more than a user may have to be allowed.
    enableReadyCheck: false,
  });
  let refusal: string | undefined;
  const note = ({ message }: Error) => {
    if (REFUSAL.test(message)) refusal ??= message;
  };
  redis.on('error', note);
  await redis
    .connect()
    .then(() => redis.ping(), note)
    .catch(note);
  redis.disconnect();
  if (refusal !== undefined) throw new Error(`${REFUSED}, at ${new URL(url).host}: ${refusal}`);
}

/** Connects without failing when Redis is down: the connection goes on trying behind the scenes. */
export async function connectInBackground(redis: Redis): Promise<void> {
  await redis.connect().catch(() => undefined);
}

/** What a subscriber does. */
export interface SubscriberOptions {
  /** What Redis lists the connection as. */
  readonly name: string;
  /** Called each time that Redis can be used, or can be used again. Nothing is subscribed then: it is for the caller to say to what. */
  readonly onReady: () => void;
}

const SUBSCRIBER_RECONNECT_DELAY_MS_MAX = 500;
/** A connection that only listens can't tell silence from an outage, so it asks for a word once in so long. */
const PING_INTERVAL_MS = 5_000;
/** Longest wait for the answer to a command, a ping among them, until the connection is replaced. */
const SUBSCRIBER_SILENCE_MS_MAX = 4_000;

/**
 * A connection for pub/sub. It is to be connected with {@link connectInBackground}, and goes on trying for ever. Nothing is queued while Redis is away:
 * what is subscribed meanwhile is rejected, and every subscription is gone with its connection. One on which Redis says nothing any more, because it is
 * frozen or the network is cut, is replaced within 10 seconds. `disconnect()` closes it at once, whatever state Redis is in.
 */
export function createSubscriber(url: string, logger: Logger, { name, onReady }: SubscriberOptions): Redis {
  const redis = new Redis(url, {
    connectionName: name,
    lazyConnect: true,
    connectTimeout: 2_000,
    socketTimeout: SUBSCRIBER_SILENCE_MS_MAX,
    commandTimeout: SUBSCRIBER_SILENCE_MS_MAX,
    // The peer of a frozen Redis never hears that the connection is ended.
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
