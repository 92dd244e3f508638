import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identifyProcess, isRunning, type ProcessIdentity } from './process-identity.ts';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

/** In the data folder, for as long as a process uses it. */
export const LOCK_FILE = 'launcher.lock';
/** A takeover is a few file operations: an older one was killed under way. */
const TAKEOVER_AGE_MAX_MS = 5_000;

/** The exclusive right to use a data folder. */
export interface DataDirLock {
  release(): Promise<void>;
}

/**
 * Locks a data folder for this process. The lock of a process that ended is taken over.
 *
 * @throws {StartError} when another process holds the lock; names its pid
 */
export async function acquireDataDirLock(dataDir: string): Promise<DataDirLock> {
  await mkdir(dataDir, { recursive: true, mode: 0o711 });
  const path = join(dataDir, LOCK_FILE);
  const token = randomBytes(8).toString('hex');
  const content = JSON.stringify({ ...identifyProcess(process.pid), token });
  const draft = `${path}.${token}`;
  await writeFile(draft, content, { mode: 0o600 });
  try {
    // A link publishes the whole file, or fails where there is one.
    if (!(await succeeds('EEXIST', link(draft, path)))) await takeOver(draft, path, dataDir);
  } finally {
    await rm(draft, { force: true });
  }
  return {
    release: async () => {
      if ((await readFile(path, 'utf8').catch(() => '')) === content) await rm(path, { force: true });
    },
  };
}

/** A second lock, a folder, keeps two processes from replacing each other's fresh lock. */
async function takeOver(draft: string, path: string, dataDir: string): Promise<void> {
  const guard = `${path}.takeover`;
  const isEntered = await waitUntil(() => enter(guard), { timeoutMs: 2 * TAKEOVER_AGE_MAX_MS });
  if (!isEntered) throw new StartError(`${guard} can't be removed: remove it if no other Latchkey is starting on ${dataDir}.`);
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

async function enter(guard: string): Promise<boolean> {
  if (await succeeds('EEXIST', mkdir(guard))) return true;
  const enteredAt = (await stat(guard).catch(() => undefined))?.mtimeMs ?? Date.now();
  if (Date.now() - enteredAt > TAKEOVER_AGE_MAX_MS) await rmdir(guard).catch(() => {});
  return false;
}

/** @returns false where the operation fails with this code */
async function succeeds(code: string, operation: Promise<unknown>): Promise<boolean> {
  try {
    await operation;
    return true;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === code) return false;
    throw err;
  }
}

async function readHolder(path: string): Promise<ProcessIdentity | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
