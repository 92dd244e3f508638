import { type OwnPostgres, startOwnPostgres } from '@latchkey/testkit/own-postgres';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';

/** The servers that a fleet stands on. */
export interface DrillServers {
  readonly postgres: OwnPostgres;
  readonly redis: OwnRedis;
  remove(): Promise<void>;
}

/** Starts servers that nobody else has to do with. */
export async function startServers(): Promise<DrillServers> {
  const [postgres, redis] = await Promise.all([startOwnPostgres(), startOwnRedis()]);
  return { postgres, redis, remove: async () => void (await Promise.all([postgres.remove(), redis.remove()])) };
}
