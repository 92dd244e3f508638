import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import { Gauge } from '../telemetry/metrics.ts';
import { findTlsFault } from './redis-tls.ts';
import { parseClusterUrl, parseRedisUrl, redisHosts } from './redis-url.ts';

export { Redis } from 'ioredis';

/** Longest wait for a response before the connection is replaced, in milliseconds. */
const SILENCE_MS_MAX = 1_000;
const SUBSCRIBER_SILENCE_MS_MAX = 4_000;
const PING_INTERVAL_MS = 5_000;

/** Options without those that the URL of sentinels sets. */
type SafeOptions = Omit<RedisOptions, 'name' | 'replyMapping'>;

/** A connection to the Redis of a URL, to the primary of its sentinels, or to its cluster. */
export function createRedis(url: string, options: SafeOptions): Redis {
  const cluster = parseClusterUrl(url);
  if (cluster) return createCluster(cluster, options);
  // A primary that became a replica rejects writes: the next connection finds the new one.
  const common = { ...options, reconnectOnError: ({ message }: Error) => message.startsWith('READONLY ') };
  const sentinels = parseRedisUrl(url);
  return sentinels ? new Redis({ ...common, ...sentinels }) : new Redis(url, common);
}

/** Each of its commands has keys of one slot. Commands of a turn to one node are sent together. */
function createCluster({ nodes, redisOptions }: NonNullable<ReturnType<typeof parseClusterUrl>>, options: SafeOptions): Redis {
  const { lazyConnect = false, enableOfflineQueue = true, retryStrategy, ...others } = options;
  const cluster = new Cluster(nodes, {
    ...{ lazyConnect, enableOfflineQueue, enableAutoPipelining: true, maxRedirections: 3 },
    ...(retryStrategy && { clusterRetryStrategy: (attempt) => retryStrategy(attempt) ?? null }),
    redisOptions: { ...others, ...redisOptions },
  });
  // It has every command, its status and its events.
  return cluster as Redis & Cluster;
}

/**
 * Creates a Redis connection that fails fast: a command that takes longer than 250 ms, or that
 * comes while the connection is down, is rejected and never queued.
 */
export function createFailFastRedis(
  url: string,
  logger: Logger,
  options: SafeOptions & { readonly name?: string; readonly reconnectDelayMsMax?: number } = {},
): Redis {
  const { reconnectDelayMsMax = 2_000, name, ...others } = options;
  const redis = createRedis(url, {
    connectTimeout: 2_000,
    commandTimeout: 250,
    socketTimeout: SILENCE_MS_MAX,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 100, reconnectDelayMsMax),
    lazyConnect: true,
    ...(name && { connectionName: name }),
    ...others,
  });
  createOutageLog(logger).watch(redis, name);
  return redis;
}

/** Kind of messages on channels: changes of accounts, or events of applications. */
type Topic = 'changes' | 'realtime';

/** The channel of an id, with the database, as Redis databases share channels. */
export const channelOf = ({ options }: Pick<Redis, 'options'>, topic: Topic, id: string): string =>
  `latchkey:${topic}:${options.db ?? 0}:${id}`;

/**
 * Creates a connection for pub/sub. Nothing is queued while Redis is down, and subscriptions end
 * with their connection: the caller subscribes again in `onReady`. Pings detect a frozen Redis or a
 * cut network within 10 s. `stop()` closes it immediately, whatever state Redis is in.
 */
export function createSubscriber(
  url: string,
  logger: Logger,
  options: {
    readonly name: string;
    readonly topic: Topic;
    readonly onReady: () => void;
    readonly onMessage: (id: string, text: string) => void;
  },
) {
  const { name, topic, onReady, onMessage } = options;
  const redis = createFailFastRedis(url, logger, {
    name,
    reconnectDelayMsMax: 500,
    socketTimeout: SUBSCRIBER_SILENCE_MS_MAX,
    commandTimeout: SUBSCRIBER_SILENCE_MS_MAX,
    // The peer of a frozen Redis never learns that the connection ended.
    disconnectTimeout: 100,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
  });
  let pings: NodeJS.Timeout | undefined;
  redis.on('close', () => clearInterval(pings));
  redis.on('ready', () => {
    clearInterval(pings);
    pings = setInterval(() => void redis.ping().catch(() => undefined), PING_INTERVAL_MS);
    onReady();
  });
  redis.on('message', (channel: string, text: string) => onMessage(channel.slice(channel.lastIndexOf(':') + 1), text));
  return {
    redis,
    start: () => connectInBackground(redis),
    stop: () => redis.disconnect(),
    async subscribe(ids: readonly string[]): Promise<void> {
      await redis.subscribe(...ids.map((id) => channelOf(redis, topic, id)));
    },
    unsubscribe(id: string): void {
      redis.unsubscribe(channelOf(redis, topic, id)).catch(() => undefined);
    },
  };
}

/** Connects without failing when Redis is down: the connection retries in the background. */
export async function connectInBackground(redis: Redis): Promise<void> {
  // Sentinels are tried until one responds, each round with an error. The promise of a cluster that
  // does not serve all slots never settles: its connection closes.
  const failed = new Promise((resolve) => redis.once('error', resolve).once('close', resolve));
  await Promise.race([redis.connect().catch(() => undefined), failed]);
}

/**
 * The connection of a BullMQ worker, which duplicates it to wait for jobs. Both are watched, and
 * closed together. Commands wait while Redis is down, as BullMQ demands.
 *
 * @param silenceMsMax longest wait for a response before the connection is replaced
 */
export function createWorkerConnection(url: string, logger: Logger, name: string, silenceMsMax: number) {
  const outages = createOutageLog(logger);
  const redis = createRedis(url, {
    connectionName: name,
    maxRetriesPerRequest: null,
    connectTimeout: 2_000,
    socketTimeout: silenceMsMax,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1_000),
  });
  const duplicate = redis.duplicate.bind(redis);
  redis.duplicate = (override) => outages.watch(duplicate(override));
  outages.watch(redis);
  return { redis, isDown: outages.isDown, disconnectAll: outages.disconnectAll };
}

const connections = new Gauge({
  name: 'latchkey_redis_connections',
  help: 'Connections to Redis, by what they are for and state: up or down.',
  labels: ['connection', 'state'],
});

const UNREACHABLE = 'redis is unreachable';
const REJECTED = 'redis rejects the user or the password of its URL';

const REJECTION = /^(WRONGPASS|NOAUTH|NOPERM) /;

/** Logs when the first of the watched connections fails, and when all of them are ready again. */
function createOutageLog(logger: Logger) {
  const watched: Redis[] = [];
  let down: string | undefined;
  return {
    watch(redis: Redis, connection = redis.options.connectionName ?? 'other'): Redis {
      watched.push(redis);
      const unwatch = connections.watch(() => {
        const isUp = redis.status === 'ready';
        return [
          [Number(isUp), connection, 'up'],
          [Number(!isUp), connection, 'down'],
        ];
      });
      // A connection that is closed for good is not an outage.
      redis.on('end', unwatch);
      redis.on('error', (err) => {
        // Between two rejections ioredis reports that the connection closed: redundant.
        const kind = REJECTION.test(err.message) ? REJECTED : UNREACHABLE;
        if (down === kind || down === REJECTED) return;
        logger.warn({ err, connection }, kind);
        down = kind;
      });
      redis.on('ready', () => {
        if (down === undefined || watched.some(({ status }) => status !== 'ready')) return;
        logger.info({ connection }, 'redis is reachable again');
        down = undefined;
      });
      return redis;
    },
    disconnectAll(): void {
      for (const redis of watched) redis.disconnect();
    },
    /** True if an outage has been logged that is not over yet. */
    isDown: (): boolean => down !== undefined,
  };
}

const ACCESS_MS_MAX = 2_000;

/** Servers that respond to a ping but not to what services send, by the mode of HELLO. */
const UNUSABLE: Readonly<Record<string, string>> = {
  sentinel: 'leads to a Redis Sentinel: use redis+sentinel://host:26379/name',
  cluster: 'leads to a node of a Redis Cluster, which only REDIS_LIMITS_URL (as redis+cluster://) and REDIS_EVENTS_URL may name',
};

/**
 * Checks a Redis URL at start: throws where Redis rejects the user, the password or the database,
 * for a node that can't be used so, and where TLS is wrong. A Redis that is down passes: the
 * service runs without it until it returns.
 */
export async function checkRedisAccess(url: string, setting = 'REDIS_URL'): Promise<void> {
  const redis = createRedis(url, {
    lazyConnect: true,
    connectTimeout: ACCESS_MS_MAX,
    commandTimeout: ACCESS_MS_MAX,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
    // The ready check needs more rights than the service does.
    enableReadyCheck: false,
  });
  let rejection: string | undefined;
  let failure: Error | undefined;
  // The error of a cluster has that of a node.
  const onError = (err: Error & { readonly lastNodeError?: Error }) => {
    const { message } = err.lastNodeError ?? err;
    failure ??= err.lastNodeError ?? err;
    if (REJECTION.test(message))
      rejection ??= `redis rejects the user or the password of ${setting}, at ${redisHosts(url)}: ${message}`;
    // ioredis would use the database 0.
    if (message.includes('DB index')) rejection ??= `${setting}, at ${redisHosts(url)}, names no database of it: ${message}`;
  };
  redis.on('error', onError);
  const check = async () => {
    await redis.connect();
    await redis.ping();
    const greeting = [await redis.call('HELLO').catch(() => [])].flat();
    const mode = `${greeting[greeting.indexOf('mode') + 1]}`;
    // Every node of a cluster broadcasts.
    const isBroadcast = mode === 'cluster' && setting === 'REDIS_EVENTS_URL';
    const unusable = redis.isCluster || isBroadcast ? undefined : UNUSABLE[mode];
    if (unusable) rejection = `${setting}, at ${redisHosts(url)}, ${unusable}`;
  };
  const closed = new Promise((resolve) => redis.once('close', resolve));
  await Promise.race([check().catch(onError), closed]);
  redis.disconnect();
  if (rejection !== undefined) throw new Error(rejection);
  const fault = failure && (await findTlsFault(url, setting, failure));
  if (fault) throw new Error(`${setting}, at ${redisHosts(url)}, can't be used: ${fault}`);
}
