import { chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { endLeftover, readCommandLine, type StopStep } from '../process/processes.ts';

/** SIGINT is a fast shutdown, SIGQUIT an immediate one; both are safe for the data. */
const STOP_STEPS: readonly StopStep[] = [
  ['SIGINT', 20_000],
  ['SIGQUIT', 10_000],
];

/**
 * Reads `postmaster.pid`, which exists while a server runs or after a crash. The port is not a
 * number before it listens.
 */
export async function readPostmasterFile(clusterDir: string) {
  const text = await readFile(join(clusterDir, 'postmaster.pid'), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]), port: Number(lines[3]), ready: lines[7]?.startsWith('ready') ?? false };
}

/** True if this pid is the server of exactly this cluster, by its command line. */
export function isPostgresOf(pid: number, clusterDir: string): boolean {
  const [program = '', flag, dir] = readCommandLine(pid);
  return basename(program) === 'postgres' && flag === '-D' && dir === clusterDir;
}

/**
 * Ends the server that a killed launcher left on this cluster.
 *
 * PostgreSQL does not start while another process has the pid of its lock file. The file also names
 * the shared memory by which it detects backends of the dead server, so it can't be removed. The
 * pid is replaced by ours, which the server ignores as its parent's.
 */
export async function endLeftoverPostgres(clusterDir: string, onProgress?: (line: string) => void): Promise<void> {
  const file = await readPostmasterFile(clusterDir);
  if (!file) return;
  if (!isPostgresOf(file.pid, clusterDir)) return replacePid(join(clusterDir, 'postmaster.pid'));
  await endLeftover('PostgreSQL', file.pid, STOP_STEPS, () => !isPostgresOf(file.pid, clusterDir), onProgress);
}

async function replacePid(path: string): Promise<void> {
  const [first = '', ...rest] = (await readFile(path, 'utf8')).split('\n');
  // A server that was killed before it wrote a line had not opened anything yet.
  if (first.trim() === '') return rm(path);
  const { uid, gid, mode } = await stat(path);
  const draft = `${path}.${process.pid}`;
  try {
    // On a full disk, overwriting the file would leave it empty.
    await writeFile(draft, [String(process.pid), ...rest].join('\n'), { mode });
    await chown(draft, uid, gid);
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
