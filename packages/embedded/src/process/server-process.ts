import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { SystemUser } from '../postgres/system-user.ts';
import { endProcess, type StopStep } from './processes.ts';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

const RECENT_LINES_MAX = 50;
const LAST_LINES_TIMEOUT_MS = 500;
/**
 * Waits on a pipe that only our process holds open. When we end without a release (kill -9, a
 * crash), the pipe closes, and the guard ends the server and removes what was temporary.
 */
const GUARD_SCRIPT = `
cat >/dev/null
kill -s "$2" "$1" 2>/dev/null
kill -s CONT "$1" 2>/dev/null
tries=0
while kill -0 "$1" 2>/dev/null && [ "$tries" -lt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
if [ -n "$3" ]; then kill -s KILL "$1" 2>/dev/null; rm -rf -- "$3"; fi
`;

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly asked: boolean;
  /** The last lines the server printed, oldest first. */
  readonly lastLines: readonly string[];
}

export type ServerProcess = Awaited<ReturnType<typeof runServer>>;

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
  removeDirWhenOrphaned?: string | undefined;
}

export interface DataServerOptions extends Pick<ServerProcessOptions, 'removeDirWhenOrphaned'> {
  /** The folder below which its data goes. It must exist. */
  dataDir: string;
  /** `false` for tests: nothing survives a crash of the machine. */
  durable?: boolean;
  onProgress?: ((line: string) => void) | undefined;
  onLog?: ((line: string) => void) | undefined;
}

/**
 * Runs a server in a separate session: a Ctrl-C at the terminal reaches only us, and we decide in
 * which order servers stop. The server ends with this process, also when that is killed.
 *
 * @throws {StartError} when the program can't be run
 */
export async function runServer(options: ServerProcessOptions) {
  const { command, args, argv0, cwd, env, user, stopSteps, onLine } = options;
  const child = spawn(command, args, {
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
  const lastLines: string[] = [];
  const collect = (line: string) => {
    lastLines.push(line);
    if (lastLines.length > RECENT_LINES_MAX) lastLines.shift();
    onLine?.(line);
  };
  const drained = Promise.all([readLines(child.stdout, collect), readLines(child.stderr, collect)]);
  const release = guardOrphan(pid, stopSteps[0][0], options.removeDirWhenOrphaned);
  let ending: Promise<void> | undefined;
  let hasEnded = false;
  const exited = once(child, 'exit').then(async ([code, signal]): Promise<ProcessExit> => {
    hasEnded = true;
    release();
    // The last lines give the reason; a grandchild may hold the pipe open.
    await Promise.race([drained, delay(LAST_LINES_TIMEOUT_MS, undefined, { ref: false })]);
    return { code, signal, asked: ending !== undefined, lastLines };
  });
  const end = async () => {
    if (!hasEnded) await endProcess(pid, stopSteps, () => hasEnded);
    release();
    await exited;
  };
  return {
    pid,
    exited,
    /** The last lines the server printed, oldest first. */
    recentLines: (): readonly string[] => lastLines,
    /** Ends the server. Another call waits for the same end. */
    stop(): Promise<void> {
      ending ??= end();
      return ending;
    },
  };
}

/**
 * Ends a server when this process ends without stopping it.
 *
 * @param signal makes the server stop in an orderly way
 * @param removeDir a folder to remove afterwards
 * @returns releases the guard. Call it before the server is stopped: its pid is reused after that.
 */
function guardOrphan(pid: number, signal: NodeJS.Signals, removeDir = ''): () => void {
  const args = ['-c', GUARD_SCRIPT, 'latchkey-guard', String(pid), signal.slice('SIG'.length), removeDir];
  // In a separate session, it gets no Ctrl-C from the terminal.
  const guard = spawn('/bin/sh', args, { detached: true, stdio: ['pipe', 'ignore', 'ignore'], cwd: '/' });
  // Without a guard, the next start still finds and ends a leftover.
  guard.on('error', () => {});
  guard.stdin.on('error', () => {});
  guard.unref();
  (guard.stdin as unknown as { unref?: () => void }).unref?.();
  return () => {
    if (guard.pid === undefined || guard.exitCode !== null || guard.signalCode !== null) return;
    try {
      process.kill(-guard.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
}

/** Waits until a server is ready. Returns false once it has ended, or after `timeoutMs`. */
export async function waitUntilReady(
  server: Pick<ServerProcess, 'exited'>,
  isReady: () => boolean | Promise<boolean>,
  timeoutMs: number,
): Promise<boolean> {
  let hasEnded = false;
  void server.exited.then(() => {
    hasEnded = true;
  });
  const isDone = await waitUntil(async () => hasEnded || (await isReady()), { timeoutMs, intervalMs: 10 });
  return isDone === true && !hasEnded;
}

function readLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
    lines.on('line', onLine);
    lines.once('close', resolve);
    stream.once('error', () => resolve());
  });
}
