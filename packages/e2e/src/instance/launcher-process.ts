import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runServer, type ServerProcess } from '@latchkey/embedded/process/server-process';
import { ROOT } from '@latchkey/launcher/program';
import { programEnv } from '@latchkey/testkit/process/program-env';

/** Several instances and a fleet start at the same time. */
const START_TIMEOUT_MS = 100_000;
const STOP_TIMEOUT_MS = 45_000;

/** The launcher as a process, as `npm start` runs it. */
export interface LauncherProcess extends ServerProcess {
  /** Everything it printed so far. */
  output(): string;
  /** Resolves with the base URL once Latchkey runs, and rejects when it ends before. */
  readonly running: Promise<string>;
  signal(signal: NodeJS.Signals): void;
}

/**
 * Runs the launcher with these settings and no others.
 *
 * @param removeDirWhenOrphaned folder to remove if this process is killed
 */
export async function startLauncher(
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
  removeDirWhenOrphaned?: string,
): Promise<LauncherProcess> {
  const { promise: running, resolve, reject } = Promise.withResolvers<string>();
  // Not every test waits for it.
  running.catch(() => {});
  let output = '';
  const launcher = await runServer({
    command: process.execPath,
    args: [`${ROOT}packages/launcher/src/main.ts`, ...args],
    cwd: tmpdir(),
    env: { ...programEnv(), HOME: process.env.HOME, ...env },
    stopSteps: [
      ['SIGTERM', STOP_TIMEOUT_MS],
      ['SIGKILL', 5_000],
    ],
    removeDirWhenOrphaned,
    onLine(line) {
      output += `${line}\n`;
      if (line === 'Ctrl-C stops it.') resolve(/Base URL {4}(\S+)/.exec(output)?.[1] ?? '');
    },
  });
  const fail = () => reject(new Error(`Latchkey did not start:\n${output}`));
  const timer = setTimeout(fail, START_TIMEOUT_MS).unref();
  void launcher.exited.then(fail).finally(() => clearTimeout(timer));
  return { ...launcher, output: () => output, running, signal: (signal) => void process.kill(launcher.pid, signal) };
}

/** A data folder that every user can reach, and its removal. */
export async function createDataDir(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'latchkey-e2e-')));
  await chmod(path, 0o711);
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10 }) };
}
