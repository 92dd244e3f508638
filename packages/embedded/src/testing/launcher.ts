import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { readCommandLine } from '../process-identity.ts';
import type { SystemUser } from '../system-user.ts';

const SCRIPT = fileURLToPath(new URL('./run-servers.ts', import.meta.url));

/** A process that started a server and can be killed. */
export interface Launcher {
  readonly process: ChildProcess;
  /** The server's pid. */
  readonly pid: number;
  readonly url: string;
  /** Ends the launcher without a chance to tidy up, and its orphan guard with it, so that the server stays. */
  killLeavingServer(): Promise<void>;
  /** Ends the launcher without a chance to tidy up. */
  kill(): Promise<void>;
}

/** Starts a server in a process of its own. */
export async function launch(what: 'postgres' | 'redis' | 'lock', dataDir: string, user?: SystemUser): Promise<Launcher> {
  const child = spawnLauncher(what, dataDir, user);
  const { pid, url } = JSON.parse(await firstLine(child)) as { pid: number; url: string };
  const kill = () => killHard(child);
  return {
    process: child,
    pid,
    url,
    kill,
    killLeavingServer: () => {
      for (const guard of findGuardsOf(pid)) process.kill(guard, 'SIGKILL');
      return kill();
    },
  };
}

/** Starts a server in a process of its own, without waiting for it to be ready. */
export function spawnLauncher(what: string, dataDir: string, user?: SystemUser): ChildProcess {
  return spawn(process.execPath, [SCRIPT, what, dataDir], {
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(user ? { uid: user.uid, gid: user.gid } : {}),
  });
}

export function killHard(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGKILL');
  return exited;
}

function findGuardsOf(pid: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((candidate) => {
      const command = readCommandLine(candidate);
      return command.includes('latchkey-guard') && command.includes(String(pid));
    });
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    if (!child.stdout) return reject(new Error('no stdout'));
    const lines = createInterface({ input: child.stdout });
    lines.once('line', resolve);
    lines.once('close', () => reject(new Error('the launcher ended before it printed a line')));
  });
}

/** A data folder that every user can reach, and its removal. */
export async function createDataDir(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'latchkey-embedded-')));
  await chmod(path, 0o711);
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10 }) };
}
