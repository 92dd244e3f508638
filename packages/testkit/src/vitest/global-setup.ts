import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '@latchkey/embedded/postgres/postgres';
import { startRedis } from '@latchkey/embedded/redis/redis';
import type { TestProject } from 'vitest/node';
import { createTestRole, dropTestDatabases } from '../postgres/test-role.ts';
import { REDIS_CACHE_DIR } from '../redis/own-redis.ts';
import type { TestServers } from './test-servers.ts';

const REDIS_DATABASES = 4_096;
const RUN = Symbol.for('latchkey.testkit.run');

/** Servers that all projects of a run share; each project loads this module again. */
interface Run {
  readonly started: Promise<{ readonly servers: TestServers; stop(): Promise<void> }>;
  users: number;
}

const holder = globalThis as { [RUN]?: Run | undefined };

/**
 * Starts one PostgreSQL and one Redis for a run, without durability. They end with the run, even
 * one that is killed.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  holder[RUN] ??= { started: startServers(), users: 0 };
  const run = holder[RUN];
  run.users += 1;
  const { servers, stop } = await run.started;
  project.provide('latchkeyTestServers', servers);
  // In watch mode a migration may have changed since the templates were made.
  project.onTestsRerun(() => dropTestDatabases(servers.postgresUrl));
  return async () => {
    run.users -= 1;
    if (run.users > 0) return;
    holder[RUN] = undefined;
    await stop();
  };
}

async function startServers() {
  const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-test-'));
  // As root, PostgreSQL runs as another user.
  await chmod(dataDir, 0o711);
  const common = { dataDir, durable: false, removeDirWhenOrphaned: dataDir } as const;
  const [postgres, redis] = await Promise.all([
    startPostgres({ ...common, connectionsMax: 500 }),
    startRedis({ ...common, cacheDir: REDIS_CACHE_DIR, databases: REDIS_DATABASES }),
  ]);
  const postgresUrl = postgres.url();
  const testRolePassword = await createTestRole(postgresUrl);
  const stop = async () => {
    await Promise.all([redis.stop(), postgres.stop()]);
    await rm(dataDir, { recursive: true, force: true });
  };
  return { servers: { postgresUrl, testRolePassword, redisUrl: redis.url, redisDatabases: REDIS_DATABASES }, stop };
}
