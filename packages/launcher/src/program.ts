import { fileURLToPath } from 'node:url';
import {
  runServer,
  type ServerProcess,
  type ServerProcessOptions,
  waitUntilReady,
} from '@latchkey/embedded/process/server-process';
import { StartError } from '@latchkey/embedded/process/start-error';
import { toReadable } from './log-sink.ts';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const READY_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2_000;

export interface ProgramOptions extends Pick<ServerProcessOptions, 'args' | 'env' | 'onLine'> {
  readonly name: string;
  readonly readyUrl: string;
  readonly stopTimeoutMs: number;
}

/**
 * Runs a program as a process that ends with this one, and waits until it is ready.
 *
 * @throws {StartError} with the last line of the program, when it does not get ready
 */
export async function startProgram({ name, readyUrl, stopTimeoutMs, ...options }: ProgramOptions): Promise<ServerProcess> {
  const program = await runServer({
    command: process.execPath,
    cwd: ROOT,
    stopSteps: [
      ['SIGTERM', stopTimeoutMs],
      ['SIGKILL', 5_000],
    ],
    ...options,
  });
  if (await waitUntilReady(program, () => answers(readyUrl), READY_TIMEOUT_MS)) return program;
  await program.stop();
  const lines = program.recentLines();
  const last = lines.findLast((line) => line.startsWith('{')) ?? lines.join('\n');
  const reason = last === '' ? `it was not ready after ${READY_TIMEOUT_MS / 1_000} s` : toReadable(last);
  throw new StartError(`${name} did not start: ${reason}`, { detail: lines });
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
