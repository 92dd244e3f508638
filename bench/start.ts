import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '@latchkey/embedded/free-port';
import { startChild } from './child.ts';
import type { Servers } from './ours.ts';
import { processTree } from './process-tree.ts';
import { type Figure, median, range } from './report.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PORT = String(await findFreePort());
const READY_URL = `http://127.0.0.1:${PORT}/readyz`;
const MIB = 1024 * 1024;
/** Time after the first answer by which the start has ended and what it needed is given back. */
const SETTLE_MS = 3_000;

/** F9: `npm start` on an installed checkout to the first 200, with its own PostgreSQL and Redis and the data of an earlier start. */
export async function measureStart(dataDir: string, rounds: number): Promise<Figure> {
  const env = { PORT, DATA_DIR: `${dataDir}/start`, DATABASE_URL: '', REDIS_URL: '' };
  const seconds: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const startedAt = performance.now();
    const child = await startChild('npm', ['start', '--prefix', ROOT], env, READY_URL);
    seconds.push((performance.now() - startedAt) / 1000);
    await child.stop();
  }
  const [first = Number.NaN, ...later] = seconds;
  return {
    id: 'F9',
    what: 'npm start to the first 200',
    value: `${median(later).toFixed(1)} s`,
    baseline: `${first.toFixed(1)} s with an empty DATA_DIR`,
    result: range(later, 1),
    goal: '≤ 4 s',
  };
}

/** F10: resident memory of the standalone process at rest, databases aside. */
export async function measureMemory({ databaseUrl, redisUrl, dataDir }: Servers): Promise<Figure> {
  const launcher = fileURLToPath(import.meta.resolve('@latchkey/standalone/main'));
  const env = {
    PORT,
    DATA_DIR: `${dataDir}/memory`,
    OBJECTS_DIR: `${dataDir}/objects`,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    SECRET_KEY: 'benchmark-secret-key-of-32-characters',
  };
  const child = await startChild(process.execPath, [launcher], env, READY_URL);
  await setTimeout(SETTLE_MS);
  const bytes = processTree(child.pid).reduce((sum, stat) => sum + stat.residentBytes, 0);
  await child.stop();
  return {
    id: 'F10',
    what: 'memory at rest, standalone',
    value: `${(bytes / MIB).toFixed(0)} MiB`,
    baseline: '',
    result: '',
    goal: '≤ 160 MiB',
  };
}
