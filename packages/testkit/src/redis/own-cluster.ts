import { Redis } from 'ioredis';
import { expect, onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { findFreePort } from '../network/free-port.ts';
import { runRedis } from './run-redis.ts';

const SLOTS = 16_384;

/** A Redis Cluster of two nodes, each with half of the slots, until the test ends. */
export async function startOwnCluster() {
  const nodes: Array<{ readonly port: number; readonly busPort: number; readonly redis: Redis }> = [];
  for (const first of [0, SLOTS / 2]) {
    const [port, busPort] = [await findFreePort(), await findFreePort()];
    await runRedis(`port ${port}
cluster-port ${busPort}
bind 127.0.0.1
requirepass watchword
save ""
cluster-enabled yes
`);
    const redis = new Redis(`redis://:watchword@127.0.0.1:${port}`, { enableReadyCheck: false });
    redis.on('error', () => undefined);
    onTestFinished(() => redis.disconnect());
    await redis.call('CLUSTER', 'ADDSLOTSRANGE', `${first}`, `${first + SLOTS / 2 - 1}`);
    for (const other of nodes) await redis.call('CLUSTER', 'MEET', '127.0.0.1', `${other.port}`, `${other.busPort}`);
    nodes.push({ port, busPort, redis });
  }
  for (const { redis } of nodes) await eventually(async () => expect(await redis.cluster('INFO')).toContain('cluster_state:ok'));
  const [node = ''] = nodes.map(({ port }) => `redis://:watchword@127.0.0.1:${port}`);
  return { url: `redis+cluster://:watchword@127.0.0.1:1,127.0.0.1:${nodes[1]?.port}`, node };
}
