import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type EmbeddedRedis, startRedis } from '@latchkey/embedded/redis';
import { Redis } from 'ioredis';

/** A Redis of a test's own, for what would disturb others. */
export interface OwnRedis {
  /** The same over every stop and start. */
  readonly url: string;
  /** Ends the server; what it was told is on the disk. */
  stop(): Promise<void>;
  /** Ends it as a crash does. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again with its data. */
  start(): Promise<void>;
  /** Holds it where it is, as a machine does that has no time for it. */
  freeze(): void;
  thaw(): void;
  /** Removes everything in it, as the loss of its disk would. */
  empty(): Promise<void>;
  /** Asks it something, on a connection for that alone. */
  ask<T>(question: (redis: Redis) => Promise<T>): Promise<T>;
  /** Ends it and removes its data. */
  remove(): Promise<void>;
}

/** A Redis that had to be downloaded is kept with the other dependencies. */
const CACHE_DIR = fileURLToPath(new URL('../../../node_modules/.cache/latchkey', import.meta.url));

/** Starts a Redis of one's own, in some 100 ms. */
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
