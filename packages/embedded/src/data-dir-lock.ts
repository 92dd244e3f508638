import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identifyProcess, isRunning, type ProcessIdentity } from './process-identity.ts';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

/** In the data folder, for as long as a process uses it. */
export const LOCK_FILE = 'launcher.lock';
/** A takeover is a few file operations; one that is older than this was killed in between. */
const TAKEOVER_AGE_MAX_MS = 5_000;

/** The right to use a data folder, until it is released. */
export interface DataDirLock {
  release(): Promise<void>;
}

/**
 * Takes a data folder for this process. The lock of a process that no longer runs is taken over, also when its pid
 * meanwhile belongs to somebody else.
 *
 * @throws {StartError} when another process that runs holds the folder; the sentence names its pid.
 */
export async function acquireDataDirLock(dataDir: string): Promise<DataDirLock> {
  await mkdir(dataDir, { recursive: true, mode: 0o711 });
  const path = join(dataDir, LOCK_FILE);
  const self = identifyProcess(process.pid);
  const content = JSON.stringify({ ...self, token: randomBytes(8).toString('hex') });
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, content, { mode: 0o600 });
  try {
    // A link either makes the whole file appear or fails, so that nobody reads half a lock.
    if (!(await tryLink(draft, path))) await takeOver(draft, path, dataDir);
  } finally {
    await rm(draft, { force: true });
  }
  return {
    release: async () => {
      if ((await readFile(path, 'utf8').catch(() => '')) === content) await rm(path, { force: true });
    },
  };
}

/**
 * Replaces the lock of a process that is gone. A second lock, a folder, keeps two processes that both found it so from
 * replacing each other's.
 */
async function takeOver(draft: string, path: string, dataDir: string): Promise<void> {
  const guard = `${path}.takeover`;
  const entered = await waitUntil(() => tryEnter(guard), { timeoutMs: 2 * TAKEOVER_AGE_MAX_MS });
  if (!entered) throw new StartError(`${guard} can't be had: remove it if no other Latchkey is starting on ${dataDir}.`);
  try {
    const holder = await readHolder(path);
    if (holder && isRunning(holder)) {
      throw new StartError(
        `Another Latchkey (pid ${holder.pid}) is using ${dataDir}: stop it first, or set DATA_DIR to another folder.`,
      );
    }
    await rename(draft, path);
  } finally {
    await rmdir(guard).catch(() => {});
  }
}

async function tryEnter(guard: string): Promise<boolean> {
  try {
    await mkdir(guard);
    return true;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'EEXIST') throw err;
  }
  const age = Date.now() - ((await stat(guard).catch(() => undefined))?.mtimeMs ?? Date.now());
  if (age > TAKEOVER_AGE_MAX_MS) await rmdir(guard).catch(() => {});
  return false;
}

async function tryLink(draft: string, path: string): Promise<boolean> {
  try {
    await link(draft, path);
    return true;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw err;
  }
}

async function readHolder(path: string): Promise<ProcessIdentity | undefined> {
  try {
    const { pid, startedAt } = JSON.parse(await readFile(path, 'utf8')) as Partial<ProcessIdentity>;
    return pid === undefined || startedAt === undefined ? undefined : { pid, startedAt };
  } catch {
    return undefined;
  }
}
