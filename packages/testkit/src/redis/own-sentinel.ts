import { Redis } from 'ioredis';
import { expect, onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { findFreePort } from '../network/free-port.ts';
import { startOwnRedis } from './own-redis.ts';
import { runRedis } from './run-redis.ts';

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
      // A primary waits 5 s for other replicas by default.
      await redis.config('SET', 'repl-diskless-sync-delay', '0');
    });
  const replicaUrl = Object.assign(new URL(replica.url), { password }).href;
  const onReplica = new Redis(replicaUrl);
  onTestFinished(() => onReplica.disconnect());
  await onReplica.replicaof(hostname, port);
  const isLinked = async () => expect(await onReplica.info('replication')).toContain('master_link_status:up');
  await eventually(isLinked, { timeoutMs: 15_000 });
  const sentinelPort = await findFreePort();
  const config = `port ${sentinelPort}
bind 127.0.0.1
requirepass watchword
sentinel monitor latchkey ${hostname} ${port} 1
sentinel auth-pass latchkey ${password}
sentinel down-after-milliseconds latchkey 500
sentinel failover-timeout latchkey 2000
`;
  await runRedis(config, '--sentinel');
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
