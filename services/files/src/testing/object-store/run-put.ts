import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('./put-process.ts', import.meta.url));

/** What a process that writes an object is given. */
export interface PutProcessOptions {
  /** A folder, or the settings of an S3 store in JSON. */
  readonly place: string;
  readonly key: string;
  readonly byteSize: number;
  readonly hang?: boolean;
  /** A shell command that runs "$@", and so decides what the process may do. */
  readonly wrapper?: string;
}

/** Writes an object in a process of its own, and gives what that and its wrapper print. */
export async function runPut(options: PutProcessOptions): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(spawnPut(options))) lines.push(line);
  return lines;
}

/** Begins to write an object and is killed in the middle. */
export async function leaveUnfinished(place: string, key: string): Promise<void> {
  // More than a part, so that the store has something of it.
  const child = spawnPut({ place, key, byteSize: 7 * 1024 * 1024, hang: true });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  for await (const line of linesOf(child)) {
    if (line !== 'hangs') throw new Error(`the writer said ${line}`);
    child.kill('SIGKILL');
  }
  await ended;
}

function spawnPut({
  place,
  key,
  byteSize,
  hang,
  wrapper = 'exec "$@"',
}: PutProcessOptions): ChildProcessByStdio<null, Readable, null> {
  const args = [process.execPath, SCRIPT, place, key, String(byteSize), ...(hang ? ['hang'] : [])];
  return spawn('/bin/sh', ['-c', wrapper, 'sh', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
}

function linesOf(child: ChildProcessByStdio<null, Readable, null>): AsyncIterable<string> {
  return createInterface({ input: child.stdout });
}
