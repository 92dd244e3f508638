import { fileURLToPath } from 'node:url';
import { runServer, type ServerProcess, waitUntilReady } from '@latchkey/embedded/server-process';
import { StartError } from '@latchkey/embedded/start-error';
import { toReadable } from './log-sink.ts';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const READY_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2_000;

export interface ProgramOptions {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** The program is ready once this URL answers 200. */
  readonly readyUrl: string;
  readonly stopTimeoutMs: number;
  readonly onLine?: ((line: string) => void) | undefined;
  /** A folder to remove with the program if this process is killed. */
  readonly removeDirWhenOrphaned?: string | undefined;
}

/**
 * Runs a program as a process that ends with this one. Does not wait until it is ready.
 */
export function runProgram(options: Omit<ProgramOptions, 'name' | 'readyUrl'>): Promise<ServerProcess> {
  const { args, stopTimeoutMs, ...rest } = options;
  return runServer({
    command: process.execPath,
    args,
    cwd: ROOT,
    stopSteps: [
      ['SIGTERM', stopTimeoutMs],
      ['SIGKILL', 5_000],
    ],
    ...rest,
  });
}

/**
 * Runs a program and waits until it is ready.
 *
 * @throws {StartError} with the last line of the program, when it does not get ready
 */
export async function startProgram(options: ProgramOptions): Promise<ServerProcess> {
  const program = await runProgram(options);
  if (await waitUntilReady(program, () => answers(options.readyUrl), READY_TIMEOUT_MS)) return program;
  await program.stop();
  const lines = program.recentLines();
  const last = lines.findLast((line) => line.startsWith('{')) ?? lines.join('\n');
  const reason = last === '' ? `it was not ready after ${READY_TIMEOUT_MS / 1_000} s` : toReadable(last);
  throw new StartError(`${options.name} did not start: ${reason}`, { detail: lines });
}

export async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
