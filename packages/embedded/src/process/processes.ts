import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

/** A signal, and how long to wait for its effect before the next one. */
export type StopStep = readonly [signal: NodeJS.Signals, timeoutMs: number];

const hasProc = existsSync('/proc/self/stat');

/** @returns the program and its arguments; empty where no process has this pid */
export function readCommandLine(pid: number): string[] {
  try {
    if (hasProc) return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean);
    const columns = ['-o', 'command=', '-p', String(pid)];
    return execFileSync('ps', columns, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .split(/\s+/)
      .filter(Boolean);
  } catch {
    return [];
  }
}

/** Sends signals to a process until it has ended. Returns whether it has. */
export async function endProcess(
  pid: number,
  steps: readonly StopStep[],
  hasEnded: () => boolean | Promise<boolean>,
): Promise<boolean> {
  for (const [signal, timeoutMs] of steps) {
    try {
      process.kill(pid, signal);
      // A suspended process handles no other signal.
      process.kill(pid, 'SIGCONT');
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== 'ESRCH') throw err;
    }
    if (await waitUntil(hasEnded, { timeoutMs })) return true;
  }
  return false;
}

/**
 * Ends the server that a killed launcher left running on its data.
 *
 * @param name what it is called in messages
 * @throws {StartError} when it does not end
 */
export async function endLeftover(
  name: string,
  pid: number,
  steps: readonly StopStep[],
  hasEnded: () => boolean | Promise<boolean>,
  onProgress?: (line: string) => void,
): Promise<void> {
  onProgress?.(`Ending the ${name} (pid ${pid}) that an earlier run left behind.`);
  const ended = await endProcess(pid, steps, hasEnded).catch((cause: unknown) => {
    throw new StartError(`A ${name} (pid ${pid}) of an earlier run uses the data as another user: end it first.`, { cause });
  });
  if (!ended) throw new StartError(`A ${name} (pid ${pid}) of an earlier run does not end: end it first.`);
}
