import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '@latchkey/launcher/program';
import { programEnv } from '@latchkey/testkit/program-env';

const MAIN = `${ROOT}packages/launcher/src/main.ts`;

/** The launcher as a process, as `npm start` runs it. */
export interface LauncherProcess {
  readonly process: ChildProcess;
  /** Everything it printed so far. */
  output(): string;
  /** Resolves once it says that it is running, and rejects when it ends before. */
  readonly running: Promise<string>;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  signal(signal: NodeJS.Signals): void;
}

/** Runs the launcher with these settings and no others. */
export function startLauncher(env: NodeJS.ProcessEnv, args: readonly string[] = []): LauncherProcess {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...programEnv(), HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  const running = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        const url = /Base URL {4}(\S+)/.exec(output)?.[1];
        if (url && output.includes('Ctrl-C stops it.')) resolve(url);
      });
    }
    void exited.then(() => reject(new Error(`the launcher ended: ${output}`)));
  });
  // Not every test waits for it.
  running.catch(() => {});
  return { process: child, output: () => output, running, exited, signal: (signal) => child.kill(signal) };
}

/** A data folder that every user can reach, and its removal. */
export async function createDataDir(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'latchkey-standalone-')));
  await chmod(path, 0o711);
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10 }) };
}
