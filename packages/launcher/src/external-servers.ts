import { StartError } from '@latchkey/embedded/process/start-error';
import { BoundedClient } from '@latchkey/kit/database/database';
import { databaseHosts } from '@latchkey/kit/database/database-url';
import { checkDatabaseUrl } from '@latchkey/kit/database/database-wait';
import { checkRedisAccess, connectInBackground, createRedis } from '@latchkey/kit/redis/redis';
import { findTlsFault } from '@latchkey/kit/redis/redis-tls';
import { redisHosts } from '@latchkey/kit/redis/redis-url';

const TIMEOUT_MS = 5_000;

/** @throws {StartError} when the PostgreSQL of DATABASE_URL can't be used; without the password */
export async function checkPostgres(url: string): Promise<void> {
  try {
    await checkDatabaseUrl(url, TIMEOUT_MS);
  } catch (err) {
    throw unusable('DATABASE_URL', 'PostgreSQL', databaseHosts(url), err);
  }
}

/** @throws {StartError} as {@link checkPostgres} */
export async function hasAccounts(url: string): Promise<boolean> {
  const client = new BoundedClient({ connectionString: url, connectionTimeoutMillis: TIMEOUT_MS, query_timeout: TIMEOUT_MS });
  try {
    await client.connect();
    const { rows } = await client.query("SELECT to_regclass('identity.account') IS NOT NULL AS exists");
    return rows[0].exists && (await client.query('SELECT 1 FROM identity.account LIMIT 1')).rowCount === 1;
  } catch (err) {
    throw unusable('DATABASE_URL', 'PostgreSQL', databaseHosts(url), err);
  } finally {
    await client.end().catch(() => {});
  }
}

/** @throws {StartError} when the Redis of a setting can't be used; without the password */
export async function checkRedis(url: string, setting = 'REDIS_URL'): Promise<void> {
  const timeouts = { connectTimeout: TIMEOUT_MS, commandTimeout: TIMEOUT_MS };
  const never = { retryStrategy: () => null, sentinelRetryStrategy: () => null };
  const redis = createRedis(url, { lazyConnect: true, ...timeouts, maxRetriesPerRequest: 0, ...never });
  let reason: unknown;
  redis.on('error', (err) => {
    reason ??= err;
  });
  try {
    await connectInBackground(redis);
    await redis.ping();
    await checkRedisAccess(url, setting);
  } catch (err) {
    reason ??= err;
    const fault = await findTlsFault(url, setting, reason);
    throw unusable(setting, 'Redis', redisHosts(url), fault === undefined ? reason : new Error(fault));
  } finally {
    redis.disconnect();
  }
}

function unusable(setting: string, what: string, hosts: string, err: unknown): StartError {
  // One of several hosts.
  const [cause] = err instanceof AggregateError ? err.errors : [err];
  const { message, code } = cause as NodeJS.ErrnoException;
  const reason = (message || code || 'no answer').replace(/\.$/, '');
  return new StartError(`The ${what} at ${hosts}, which ${setting} names, can't be used: ${reason}.`, { cause: err });
}
