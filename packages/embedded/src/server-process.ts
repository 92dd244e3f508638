import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { guardOrphan } from './orphan-guard.ts';
import { StartError } from './start-error.ts';
import type { SystemUser } from './system-user.ts';
import { waitUntil } from './wait-until.ts';

const RECENT_LINES_MAX = 50;

/** How a server ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Whether `stop()` had been called, so that nobody needs to be told. */
  readonly asked: boolean;
  /** The last lines the server printed, oldest first. */
  readonly lastLines: readonly string[];
}

/** A signal and how long to wait for its effect, in milliseconds, before the next one. */
export type StopStep = readonly [signal: NodeJS.Signals, timeoutMs: number];

export interface ServerProcess {
  readonly pid: number;
  readonly exited: Promise<ProcessExit>;
  /** The last lines the server printed, oldest first. */
  recentLines(): readonly string[];
  /** Ends the server; resolves when it is gone. Calling it again waits for the same end. */
  stop(): Promise<void>;
}

export interface ServerProcessOptions {
  command: string;
  args: readonly string[];
  /** The name the program is told it was called by, where that differs from `command`. */
  argv0?: string;
  cwd: string;
  env: NodeJS.ProcessEnv;
  user?: SystemUser | undefined;
  stopSteps: readonly [StopStep, ...StopStep[]];
  onLine?: ((line: string) => void) | undefined;
  /** A folder that goes away with the server if we do not live to remove it. */
  removeDirWhenOrphaned?: string | undefined;
}

/**
 * Runs a server beside us, in a session of its own, so that a Ctrl-C at the terminal reaches only us and we decide
 * in which order things stop.
 *
 * @throws {StartError} when the program can't be run at all.
 */
export async function runServer(options: ServerProcessOptions): Promise<ServerProcess> {
  const child = spawn(options.command, [...options.args], {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(options.argv0 === undefined ? {} : { argv0: options.argv0 }),
    ...(options.user ? { uid: options.user.uid, gid: options.user.gid } : {}),
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (err) => {
      reject(new StartError(`${options.command} could not be run: ${err.message}.`, { cause: err }));
    });
  });
  const { pid } = child;
  if (pid === undefined) throw new StartError(`${options.command} could not be run.`);

  const recent: string[] = [];
  const keep = (line: string) => {
    recent.push(line);
    if (recent.length > RECENT_LINES_MAX) recent.shift();
    options.onLine?.(line);
  };
  const drained = Promise.all([readLines(child.stdout, keep), readLines(child.stderr, keep)]);

  const [firstStep] = options.stopSteps;
  const release = guardOrphan({ pid, signal: firstStep[0], removeDir: options.removeDirWhenOrphaned });
  let asked = false;
  let gone = false;
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (code, signal) => {
      gone = true;
      release();
      // The last lines say why; a grandchild that keeps the pipe open must not hold the news back.
      void Promise.race([drained, waitUntil(() => false, { timeoutMs: 500 })]).then(() =>
        resolve({ code, signal, asked, lastLines: recent }),
      );
    });
  });

  async function end(): Promise<void> {
    asked = true;
    for (const [signal, timeoutMs] of options.stopSteps) {
      if (gone) break;
      child.kill(signal);
      // One that is suspended would not even notice.
      child.kill('SIGCONT');
      await waitUntil(() => gone, { timeoutMs });
    }
    release();
    await exited;
  }
  let ending: Promise<void> | undefined;
  return {
    pid,
    exited,
    recentLines: () => recent,
    stop: () => {
      ending ??= end();
      return ending;
    },
  };
}

function readLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
    lines.on('line', onLine);
    lines.once('close', resolve);
    stream.once('error', () => resolve());
  });
}
