import { spawn } from 'node:child_process';
import { once } from 'node:events';
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
  /** Whether `stop()` had been called. */
  readonly asked: boolean;
  /** The last lines the server printed, oldest first. */
  readonly lastLines: readonly string[];
}

/** A signal, and how long to wait for its effect before the next one. */
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
  /** The name the program is called by, where that differs from `command`. */
  argv0?: string | undefined;
  cwd: string;
  env: NodeJS.ProcessEnv;
  user?: SystemUser | undefined;
  stopSteps: readonly [StopStep, ...StopStep[]];
  onLine?: ((line: string) => void) | undefined;
  /** A folder that is removed with the server where this process ends before it could do so. */
  removeDirWhenOrphaned?: string | undefined;
}

/**
 * Runs a server in a session of its own: a Ctrl-C at the terminal reaches only us, and we decide in
 * which order servers stop. The server ends with this process, also when that is killed.
 *
 * @throws {StartError} when the program can't be run
 */
export async function runServer(options: ServerProcessOptions): Promise<ServerProcess> {
  const { command, args, argv0, cwd, env, user, stopSteps, onLine } = options;
  const child = spawn(command, [...args], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(argv0 !== undefined && { argv0 }),
    ...user,
  });
  await once(child, 'spawn').catch((err: Error) => {
    throw new StartError(`${command} could not be run: ${err.message}.`, { cause: err });
  });
  const pid = child.pid as number;
  const recent: string[] = [];
  const collect = (line: string) => {
    recent.push(line);
    if (recent.length > RECENT_LINES_MAX) recent.shift();
    onLine?.(line);
  };
  const drained = Promise.all([readLines(child.stdout, collect), readLines(child.stderr, collect)]);
  const release = guardOrphan(pid, stopSteps[0][0], options.removeDirWhenOrphaned);
  let asked = false;
  let gone = false;
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', async (code, signal) => {
      gone = true;
      release();
      // The last lines give the reason; a grandchild may hold the pipe open.
      await Promise.race([drained, waitUntil(() => false, { timeoutMs: 500 })]);
      resolve({ code, signal, asked, lastLines: recent });
    });
  });

  async function end(): Promise<void> {
    asked = true;
    for (const [signal, timeoutMs] of stopSteps) {
      if (gone) break;
      child.kill(signal);
      // A suspended process gets no other signal.
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

/**
 * Waits until a server is ready.
 *
 * @returns false once it has ended, or after `timeoutMs`
 */
export async function waitUntilReady(
  server: Pick<ServerProcess, 'exited'>,
  isReady: () => boolean | Promise<boolean>,
  timeoutMs: number,
): Promise<boolean> {
  let ended = false;
  void server.exited.then(() => {
    ended = true;
  });
  await waitUntil(async () => ended || (await isReady()), { timeoutMs, intervalMs: 10 }).then((done) => {
    ended ||= !done;
  });
  return !ended;
}

function readLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
    lines.on('line', onLine);
    lines.once('close', resolve);
    stream.once('error', () => resolve());
  });
}
