import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '@latchkey/embedded/process/free-port';
import { runServer } from '@latchkey/embedded/process/server-process';
import { ROOT } from '@latchkey/launcher/program';
import { type Servers, startOurs, waitUntilAnswers } from '../harness/ours.ts';
import { type Figure, median, range } from '../harness/report.ts';

const MIB = 1024 * 1024;
/** After this time the process has given back the memory of its start. */
const SETTLE_MS = 3_000;

/**
 * F9: `npm start` on an installed checkout to the first 200, with its own servers and the data of
 * an earlier start.
 */
export async function measureStart(dataDir: string, rounds: number): Promise<Figure> {
  const PORT = String(await findFreePort());
  const env = { ...process.env, PORT, DATA_DIR: `${dataDir}/start`, DATABASE_URL: '', REDIS_URL: '' };
  const seconds: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const startedAt = performance.now();
    const npm = await runServer({ command: 'npm', args: ['start'], cwd: ROOT, env, stopSteps: [['SIGTERM', 60_000]] });
    await waitUntilAnswers(`http://127.0.0.1:${PORT}/readyz`);
    seconds.push((performance.now() - startedAt) / 1000);
    await npm.stop();
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
export async function measureMemory(servers: Servers): Promise<Figure> {
  const ours = await startOurs(servers, 'standalone');
  await delay(SETTLE_MS);
  const bytes = ours.measured().reduce((sum, stat) => sum + stat.residentBytes, 0);
  return { id: 'F10', what: 'memory at rest, standalone', value: `${(bytes / MIB).toFixed(0)} MiB`, goal: '≤ 140 MiB' };
}
