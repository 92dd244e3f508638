import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedis, redisEnv } from '@latchkey/embedded/redis/redis-program';
import { onTestFinished } from 'vitest';
import { REDIS_CACHE_DIR } from './own-redis.ts';

/** Runs the Redis program with a configuration until the test ends. */
export async function runRedis(config: string, ...args: readonly string[]): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-redis-'));
  await writeFile(join(dir, 'redis.conf'), config);
  const program = await findRedis(REDIS_CACHE_DIR);
  const server = spawn(program.command, ['redis.conf', ...args], {
    ...{ cwd: dir, env: redisEnv(program), stdio: 'ignore' },
    ...(program.argv0 !== undefined && { argv0: program.argv0 }),
  });
  const exited = once(server, 'exit');
  onTestFinished(async () => {
    server.kill();
    await exited;
    await rm(dir, { recursive: true });
  });
}
