import { chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { identifyProcess, isRunning, readCommandLine } from './process-identity.ts';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

/** The server's lock file: who holds the cluster, and from its eighth line on, whether it is ready. */
export interface PostmasterFile {
  readonly pid: number;
  /** Where it listens; not a number before it does. */
  readonly port: number;
  readonly ready: boolean;
}

/** @returns what `postmaster.pid` says, or `undefined` when there is none. */
export async function readPostmasterFile(clusterDir: string): Promise<PostmasterFile | undefined> {
  const text = await readFile(join(clusterDir, 'postmaster.pid'), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]), port: Number(lines[3]), ready: lines[7]?.startsWith('ready') ?? false };
}

/** Whether this pid is the server of exactly this cluster, told by its command line. */
export function isPostgresOf(pid: number, clusterDir: string): boolean {
  const [program = '', ...args] = readCommandLine(pid);
  return basename(program) === 'postgres' && args[args.indexOf('-D') + 1] === clusterDir && args.includes('-D');
}

/**
 * Ends the server that a killed launcher left on this cluster, and no other.
 *
 * When the pid in the lock file now belongs to some other process, PostgreSQL would refuse to start. The file can't
 * just be removed, as it also names the shared memory by which PostgreSQL knows that no backend of the dead server is
 * still writing. So only the pid in it is replaced, by ours, which the server passes over as that of its parent.
 */
export async function endLeftoverPostgres(clusterDir: string, onProgress?: (line: string) => void): Promise<void> {
  const file = await readPostmasterFile(clusterDir);
  if (!file) return;
  if (isPostgresOf(file.pid, clusterDir)) {
    onProgress?.(`Ending the PostgreSQL (pid ${file.pid}) that an earlier run left behind.`);
    await end(file.pid);
    return;
  }
  await replacePid(join(clusterDir, 'postmaster.pid'), process.pid);
}

async function end(pid: number): Promise<void> {
  const identity = identifyProcess(pid);
  if (!identity) return;
  const gone = () => !isRunning(identity);
  // SIGINT is a fast shutdown, SIGQUIT an immediate one; both are safe for the data.
  for (const [signal, timeoutMs] of [
    ['SIGINT', 20_000],
    ['SIGQUIT', 10_000],
  ] as const) {
    try {
      process.kill(pid, signal);
      // One that is suspended would not even notice.
      process.kill(pid, 'SIGCONT');
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code === 'ESRCH') return;
      throw new StartError(
        `A PostgreSQL (pid ${pid}) of an earlier run is still using the data and belongs to another user: end it first.`,
        { cause: err },
      );
    }
    if (await waitUntil(gone, { timeoutMs })) return;
  }
  throw new StartError(`A PostgreSQL (pid ${pid}) of an earlier run does not end: end it first.`);
}

async function replacePid(path: string, pid: number): Promise<void> {
  const [first = '', ...rest] = (await readFile(path, 'utf8')).split('\n');
  // A server that was killed before it wrote a line had not opened anything yet.
  if (first.trim() === '') return rm(path);
  const { uid, gid, mode } = await stat(path);
  const draft = `${path}.${process.pid}`;
  try {
    // On a full disk, a file that is written in place is left empty.
    await writeFile(draft, [String(pid), ...rest].join('\n'), { mode });
    await chown(draft, uid, gid);
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
