import { chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readCommandLine } from './process-identity.ts';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

/** The server's lock file. */
export interface PostmasterFile {
  readonly pid: number;
  /** Where it listens; not a number before it does. */
  readonly port: number;
  readonly ready: boolean;
}

/** @returns what `postmaster.pid` holds, or `undefined` where there is none */
export async function readPostmasterFile(clusterDir: string): Promise<PostmasterFile | undefined> {
  const text = await readFile(join(clusterDir, 'postmaster.pid'), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]), port: Number(lines[3]), ready: lines[7]?.startsWith('ready') ?? false };
}

/** Whether this pid is the server of exactly this cluster, by its command line. */
export function isPostgresOf(pid: number, clusterDir: string): boolean {
  const [program = '', flag, dir] = readCommandLine(pid);
  return basename(program) === 'postgres' && flag === '-D' && dir === clusterDir;
}

/**
 * Ends the server that a killed launcher left on this cluster, and no other.
 *
 * PostgreSQL refuses to start where the pid in its lock file belongs to some other process by now.
 * The file also names the shared memory by which it knows that no backend of the dead server still
 * writes, so it can't be removed. The pid is replaced by ours, which the server ignores: its
 * parent's.
 */
export async function endLeftoverPostgres(clusterDir: string, onProgress?: (line: string) => void): Promise<void> {
  const file = await readPostmasterFile(clusterDir);
  if (!file) return;
  if (!isPostgresOf(file.pid, clusterDir)) return replacePid(join(clusterDir, 'postmaster.pid'));
  onProgress?.(`Ending the PostgreSQL (pid ${file.pid}) that an earlier run left behind.`);
  await end(file.pid, clusterDir);
}

async function end(pid: number, clusterDir: string): Promise<void> {
  // SIGINT is a fast shutdown, SIGQUIT an immediate one; both are safe for the data.
  for (const [signal, timeoutMs] of [
    ['SIGINT', 20_000],
    ['SIGQUIT', 10_000],
  ] as const) {
    try {
      process.kill(pid, signal);
      // A suspended process gets no other signal.
      process.kill(pid, 'SIGCONT');
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code === 'ESRCH') return;
      throw new StartError(`A PostgreSQL (pid ${pid}) of an earlier run uses the data as another user: end it first.`, {
        cause: err,
      });
    }
    if (await waitUntil(() => !isPostgresOf(pid, clusterDir), { timeoutMs })) return;
  }
  throw new StartError(`A PostgreSQL (pid ${pid}) of an earlier run does not end: end it first.`);
}

async function replacePid(path: string): Promise<void> {
  const [first = '', ...rest] = (await readFile(path, 'utf8')).split('\n');
  // A server that was killed before it wrote a line had not opened anything yet.
  if (first.trim() === '') return rm(path);
  const { uid, gid, mode } = await stat(path);
  const draft = `${path}.${process.pid}`;
  try {
    // On a full disk, a file that is written in place is left empty.
    await writeFile(draft, [String(process.pid), ...rest].join('\n'), { mode });
    await chown(draft, uid, gid);
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
