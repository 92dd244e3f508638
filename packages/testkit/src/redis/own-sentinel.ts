import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedis, redisEnv } from '@latchkey/embedded/redis/redis-program';
import { Redis } from 'ioredis';
import { expect, onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { findFreePort } from '../network/free-port.ts';
import { REDIS_CACHE_DIR, startOwnRedis } from './own-redis.ts';

/** A primary, its replica, and a Sentinel with a password that watches them. */
export async function startOwnSentinel() {
  const servers = [await startOwnRedis(), await startOwnRedis()] as const;
  for (const server of servers) onTestFinished(() => server.remove());
  const [primary, replica] = servers;
  const { hostname, port, password } = new URL(primary.url);
  for (const server of servers)
    await server.ask(async (redis) => {
      await redis.config('SET', 'requirepass', password);
      await redis.config('SET', 'masterauth', password);
    });
  const replicaUrl = Object.assign(new URL(replica.url), { password }).href;
  const onReplica = new Redis(replicaUrl);
  onTestFinished(() => onReplica.disconnect());
  await onReplica.replicaof(hostname, port);
  await eventually(async () => expect(await onReplica.info('replication')).toContain('master_link_status:up'));
  const sentinelPort = await findFreePort();
  const config = `port ${sentinelPort}
bind 127.0.0.1
requirepass watchword
sentinel monitor latchkey ${hostname} ${port} 1
sentinel auth-pass latchkey ${password}
sentinel down-after-milliseconds latchkey 500
sentinel failover-timeout latchkey 2000
`;
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-sentinel-'));
  await writeFile(join(dir, 'sentinel.conf'), config);
  const program = await findRedis(REDIS_CACHE_DIR);
  const sentinel = spawn(program.command, ['sentinel.conf', '--sentinel'], {
    ...{ cwd: dir, env: redisEnv(program), stdio: 'ignore' },
    ...(program.argv0 !== undefined && { argv0: program.argv0 }),
  });
  const exited = once(sentinel, 'exit');
  onTestFinished(async () => {
    sentinel.kill();
    await exited;
    await rm(dir, { recursive: true });
  });
  const address = `127.0.0.1:${sentinelPort}`;
  const watching = new Redis(`redis://:watchword@${address}`, { enableReadyCheck: false });
  watching.on('error', () => undefined);
  onTestFinished(() => watching.disconnect());
  await eventually(async () => expect(await watching.call('SENTINEL', 'REPLICAS', 'latchkey')).toHaveLength(1), {
    timeoutMs: 15_000,
  });
  // The first sentinel of the URL is down.
  const url = `redis+sentinel://:${password}@127.0.0.1:1,${address}/latchkey/0?sentinel_password=watchword`;
  return { url, primary, onReplica, sentinelUrl: `redis://:watchword@${address}` };
}
