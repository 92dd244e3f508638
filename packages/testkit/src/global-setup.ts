import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startPostgres } from '@latchkey/embedded/postgres';
import { startRedis } from '@latchkey/embedded/redis';
import type { TestProject } from 'vitest/node';
import { createTestRole, dropTestDatabases } from './test-role.ts';
import './provided.ts';

/** A Redis that had to be downloaded is kept with the other dependencies. */
const CACHE_DIR = fileURLToPath(new URL('../../../node_modules/.cache/latchkey', import.meta.url));
const REDIS_DATABASES = 4_096;

/**
 * Starts one PostgreSQL and one Redis for a whole run of the tests, in a temporary folder and without care for
 * durability. Both go away with the run, also one that is killed.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-test-'));
  // As root, PostgreSQL runs as another user, who has to pass through.
  await chmod(dataDir, 0o711);
  const common = { dataDir, durable: false, removeDirWhenOrphaned: dataDir } as const;
  const [postgres, redis] = await Promise.all([
    startPostgres({ ...common, connectionsMax: 500 }),
    startRedis({ ...common, cacheDir: CACHE_DIR, databases: REDIS_DATABASES }),
  ]);
  const postgresUrl = postgres.url();
  const testRolePassword = await createTestRole(postgresUrl);
  project.provide('latchkeyTestServers', { postgresUrl, testRolePassword, redisUrl: redis.url, redisDatabases: REDIS_DATABASES });
  // In watch mode a migration may have changed since the templates were made.
  project.onTestsRerun(() => dropTestDatabases(postgresUrl));
  return async () => {
    await Promise.all([redis.stop(), postgres.stop()]);
    await rm(dataDir, { recursive: true, force: true });
  };
}
