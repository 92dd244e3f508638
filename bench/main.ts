import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '@latchkey/embedded/postgres/postgres';
import { startRedis } from '@latchkey/embedded/redis/redis';
import { measureAvatarCpu } from './figures/avatar.ts';
import { measureBroadcast } from './figures/broadcast.ts';
import { measureBurst, measurePolls } from './figures/burst.ts';
import { measureFilesTable } from './figures/files-table.ts';
import { measureLiveLatency } from './figures/live-latency.ts';
import { measureFeed, measureSettings, measureThroughput } from './figures/settings-read.ts';
import { measureSize } from './figures/size.ts';
import { measureMemory, measureStart } from './figures/start.ts';
import { measureStorm } from './figures/storm.ts';
import { measureUploadCpu, measureUploadMemory } from './figures/upload.ts';
import type { Servers } from './harness/ours.ts';
import { type Figure, printFigures } from './harness/report.ts';

const ROUNDS = 7;

const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-bench-'));
// As root, PostgreSQL runs as another user, who has to pass through.
await chmod(dataDir, 0o711);
const serverDir = join(dataDir, 'servers');
await mkdir(serverDir, { mode: 0o711 });
const [postgres, redis] = await Promise.all([startPostgres({ dataDir: serverDir }), startRedis({ dataDir: serverDir })]);
const common = { databaseUrl: postgres.url(), redisUrl: redis.url, dataDir };

const figures: Array<[string, (servers: Servers) => Promise<Figure | Figure[]>]> = [
  ['F1', (servers) => measureSettings(servers, 'standalone', ROUNDS)],
  ['F2', (servers) => measureSettings(servers, 'deployed', ROUNDS)],
  ['F3', (servers) => measureUploadCpu(servers, 'standalone', ROUNDS)],
  ['F3', (servers) => measureUploadCpu(servers, 'deployed', ROUNDS)],
  ['F4', (servers) => measureUploadMemory(servers, 'standalone')],
  ['F4', (servers) => measureUploadMemory(servers, 'deployed')],
  ['F5', (servers) => measureFilesTable(servers)],
  ['F8', (servers) => measureAvatarCpu(servers, 'standalone', ROUNDS)],
  ['F8', (servers) => measureAvatarCpu(servers, 'deployed', ROUNDS)],
  ['F6', (servers) => measureBroadcast(servers, ROUNDS)],
  ['F7', (servers) => measureLiveLatency(servers, 'standalone')],
  ['F7', (servers) => measureLiveLatency(servers, 'deployed')],
  ['F9', () => measureStart(dataDir, 3)],
  ['F10', (servers) => measureMemory(servers)],
  ['F11', (servers) => measureThroughput(servers, ROUNDS)],
  ['F14', (servers) => measureFeed(servers, ROUNDS)],
  ['S8', (servers) => measureBurst(servers, 'standalone', ROUNDS)],
  ['S8', (servers) => measureBurst(servers, 'deployed', ROUNDS)],
  ['S8', (servers) => measurePolls(servers, 'standalone', ROUNDS)],
  ['S8', (servers) => measurePolls(servers, 'deployed', ROUNDS)],
  ['size', (servers) => measureSize(servers)],
  ['storm', (servers) => measureStorm(servers)],
];
/** Figures that take minutes, measured only by name. */
const LONG = new Set(['size', 'storm']);
const wanted = process.argv.slice(2);
const unknown = wanted.filter((id) => !figures.some(([known]) => known === id));
if (unknown.length > 0) {
  process.stderr.write(
    `Unknown figure: ${unknown.join(', ')}. Figures: ${[...new Set(figures.map(([id]) => id))].join(', ')}.\n`,
  );
  process.exitCode = 2;
}

const results: Figure[] = [];
try {
  for (const [id, measure] of figures) {
    if (unknown.length > 0 || (wanted.length > 0 ? !wanted.includes(id) : LONG.has(id))) continue;
    process.stderr.write(`measuring ${id}\n`);
    const stops = new AsyncDisposableStack();
    results.push(...[await measure({ ...common, stops }).finally(() => stops.disposeAsync())].flat());
  }
} finally {
  // Also those before one that fails.
  if (results.length > 0) printFigures(results);
  await Promise.all([postgres.stop(), redis.stop()]);
  await rm(dataDir, { recursive: true, force: true });
}
