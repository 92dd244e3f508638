import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '@latchkey/embedded/postgres';
import { startRedis } from '@latchkey/embedded/redis';
import { measureAvatarCpu } from './avatar.ts';
import { measureBroadcast } from './broadcast.ts';
import { measureFilesTable } from './files-table.ts';
import { measureLiveLatency } from './live-latency.ts';
import { type Figure, printFigures } from './report.ts';
import { measureSettings } from './settings.ts';
import { measureMemory, measureStart } from './start.ts';
import { measureStorm } from './storm.ts';
import { measureUploadCpu, measureUploadMemory } from './upload.ts';

const ROUNDS = 7;

const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-bench-'));
// As root, PostgreSQL runs as another user, who has to pass through.
await chmod(dataDir, 0o711);
const serverDir = join(dataDir, 'servers');
await mkdir(serverDir, { mode: 0o711 });
const [postgres, redis] = await Promise.all([startPostgres({ dataDir: serverDir }), startRedis({ dataDir: serverDir })]);
const servers = { databaseUrl: postgres.url(), redisUrl: redis.url, dataDir };

const figures: Array<[string, () => Promise<Figure | Figure[]>]> = [
  ['F1', () => measureSettings(servers, 'standalone', ROUNDS)],
  ['F2', () => measureSettings(servers, 'deployed', ROUNDS)],
  ['F3', () => measureUploadCpu(servers, 'standalone', ROUNDS)],
  ['F3', () => measureUploadCpu(servers, 'deployed', ROUNDS)],
  ['F4', () => measureUploadMemory(servers, 'standalone')],
  ['F4', () => measureUploadMemory(servers, 'deployed')],
  ['F5', () => measureFilesTable(servers)],
  ['F8', () => measureAvatarCpu(servers, 'standalone', ROUNDS)],
  ['F8', () => measureAvatarCpu(servers, 'deployed', ROUNDS)],
  ['F6', () => measureBroadcast(servers, ROUNDS)],
  ['F7', () => measureLiveLatency(servers, 'standalone')],
  ['F7', () => measureLiveLatency(servers, 'deployed')],
  ['F9', () => measureStart(dataDir, 3)],
  ['F10', () => measureMemory(servers)],
  ['storm', () => measureStorm(servers, 'standalone', 1)],
  ['storm', () => measureStorm(servers, 'deployed', 1)],
  ['storm', () => measureStorm(servers, 'deployed', 500)],
];
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
    if (unknown.length > 0 || (wanted.length > 0 && !wanted.includes(id))) continue;
    process.stderr.write(`measuring ${id}\n`);
    results.push(...[await measure()].flat());
  }
} finally {
  // Also those before one that fails.
  if (results.length > 0) printFigures(results);
  await Promise.all([postgres.stop(), redis.stop()]);
  await rm(dataDir, { recursive: true, force: true });
}
