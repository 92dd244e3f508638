import { StartError } from '@latchkey/embedded/process/start-error';
import { Redis } from 'ioredis';
import { Client } from 'pg';

const TIMEOUT_MS = 5_000;

/** @throws {StartError} when the PostgreSQL of DATABASE_URL can't be used; without the password */
export async function checkPostgres(url: string): Promise<void> {
  await query(url, 'SELECT 1');
}

/** @throws {StartError} as {@link checkPostgres} */
export async function hasAccounts(url: string): Promise<boolean> {
  const [table] = await query(url, "SELECT to_regclass('identity.account') IS NOT NULL AS exists");
  return table?.exists === true && (await query(url, 'SELECT 1 FROM identity.account LIMIT 1')).length > 0;
}

async function query(url: string, sql: string): Promise<Array<Record<string, unknown>>> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: TIMEOUT_MS, query_timeout: TIMEOUT_MS });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } catch (err) {
    throw unusable('DATABASE_URL', 'PostgreSQL', url, err);
  } finally {
    await client.end().catch(() => {});
  }
}

/** @throws {StartError} when the Redis of REDIS_URL can't be used; without the password */
export async function checkRedis(url: string): Promise<void> {
  const timeouts = { connectTimeout: TIMEOUT_MS, commandTimeout: TIMEOUT_MS };
  const redis = new Redis(url, { lazyConnect: true, ...timeouts, maxRetriesPerRequest: 0, retryStrategy: () => null });
  let reason: unknown;
  redis.on('error', (err) => {
    reason ??= err;
  });
  try {
    await redis.connect();
    await redis.ping();
  } catch (err) {
    throw unusable('REDIS_URL', 'Redis', url, reason ?? err);
  } finally {
    redis.disconnect();
  }
}

function unusable(setting: string, what: string, url: string, err: unknown): StartError {
  const { message, code } = err as NodeJS.ErrnoException;
  const reason = (message || code || 'no answer').replace(/\.$/, '');
  return new StartError(`The ${what} at ${new URL(url).host}, which ${setting} names, can't be used: ${reason}.`, { cause: err });
}
