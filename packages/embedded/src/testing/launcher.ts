import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { SystemUser } from '../postgres/system-user.ts';
import { readCommandLine } from '../process/processes.ts';

/** The cache of `npm start`, so that a machine without Redis downloads it once. */
export const CACHE_DIR = fileURLToPath(new URL('../../../../node_modules/.cache/latchkey', import.meta.url));

const moduleUrl = (name: string) => JSON.stringify(new URL(`../${name}.ts`, import.meta.url).href);
const PROGRAMS = {
  postgres: `(await import(${moduleUrl('postgres/postgres')})).startPostgres({ dataDir, durable: false })`,
  redis: `(await import(${moduleUrl('redis/redis')})).startRedis({ dataDir, cacheDir: ${JSON.stringify(CACHE_DIR)} })`,
  lock: `(await import(${moduleUrl('process/data-dir-lock')})).acquireDataDirLock(dataDir)`,
};

/** A process that started a server and can be killed. */
export interface Launcher {
  readonly process: ChildProcess;
  /** The server's pid. */
  readonly pid: number;
  readonly url: string;
  /** Kills the launcher and its orphan guard, so that the server stays. */
  killLeavingServer(): Promise<void>;
}

/** Starts a server in another process and waits until it is ready. */
export async function launch(what: keyof typeof PROGRAMS, dataDir: string, user?: SystemUser): Promise<Launcher> {
  const child = spawnLauncher(what, dataDir, user);
  const line = await Promise.race([
    once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), 'line').then(([text]) => text as string),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`it ended before it was ready: ${code}`))),
  ]);
  const { pid, url } = JSON.parse(line) as { pid: number; url: string };
  const killLeavingServer = async () => {
    for (const guard of findGuards(pid)) process.kill(guard, 'SIGKILL');
    await killHard(child);
  };
  return { process: child, pid, url, killLeavingServer };
}

/** Starts a server in another process, which ends with the test. */
export function spawnLauncher(what: keyof typeof PROGRAMS, dataDir: string, user?: SystemUser): ChildProcess {
  const program = `const dataDir = ${JSON.stringify(dataDir)};
    setInterval(() => {}, 60_000);
    const { pid, url } = await ${PROGRAMS[what]};
    console.log(JSON.stringify({ pid, url: typeof url === 'function' ? url() : url }));`;
  const args = ['--input-type=module', '-e', program];
  const child = spawn(process.execPath, args, { cwd: '/', stdio: ['ignore', 'pipe', 'inherit'], ...user });
  // A process that a failed test leaves would hold the output of the whole run open.
  onTestFinished(() => killHard(child));
  return child;
}

export async function killHard(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

function findGuards(pid: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((candidate) => {
      const command = readCommandLine(candidate);
      return command.includes('latchkey-guard') && command.includes(String(pid));
    });
}

/** A data folder that every user can reach, and its removal. */
export async function createDataDir(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'latchkey-embedded-')));
  await chmod(path, 0o711);
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10 }) };
}
