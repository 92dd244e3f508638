import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type EmbeddedRedis, startRedis } from '@latchkey/embedded/redis';
import { Redis } from 'ioredis';

/** A Redis of one test, for what would disturb others. */
export interface OwnRedis {
  /** It stays the same over restarts. */
  readonly url: string;
  /** Stops the server; its data stays. */
  stop(): Promise<void>;
  /** Kills it, and resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again with its data. */
  start(): Promise<void>;
  /** Stops it by SIGSTOP. */
  freeze(): void;
  thaw(): void;
  /** Removes all data. */
  empty(): Promise<void>;
  /** Runs commands on a new connection. */
  ask<T>(question: (redis: Redis) => Promise<T>): Promise<T>;
  /** Ends it and removes its data. */
  remove(): Promise<void>;
}

/** A Redis that had to be downloaded is kept with the other dependencies. */
const CACHE_DIR = fileURLToPath(new URL('../../../node_modules/.cache/latchkey', import.meta.url));

/** Starts a Redis in about 100 ms. */
export async function startOwnRedis(): Promise<OwnRedis> {
  const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-redis-'));
  await chmod(dataDir, 0o711);
  const launch = (address?: EmbeddedRedis) =>
    startRedis({ dataDir, cacheDir: CACHE_DIR, removeDirWhenOrphaned: dataDir, ...(address && { address }) });
  let server = await launch();
  let isRunning = true;
  const thaw = () => {
    if (isRunning) process.kill(server.pid, 'SIGCONT');
  };
  const stop = async () => {
    thaw();
    isRunning = false;
    await server.stop();
  };
  const ask = async <T>(question: (redis: Redis) => Promise<T>) => {
    const redis = new Redis(server.url, { maxRetriesPerRequest: 1, commandTimeout: 5_000 });
    redis.on('error', () => undefined);
    try {
      return await question(redis);
    } finally {
      redis.disconnect();
    }
  };
  return {
    url: server.url,
    stop,
    async kill() {
      isRunning = false;
      process.kill(server.pid, 'SIGKILL');
      await server.exited;
    },
    async start() {
      server = await launch(server);
      isRunning = true;
    },
    freeze: () => void process.kill(server.pid, 'SIGSTOP'),
    thaw,
    empty: () => ask(async (redis) => void (await redis.flushall())),
    ask,
    async remove() {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
