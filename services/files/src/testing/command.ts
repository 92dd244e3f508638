import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { programEnv } from '@latchkey/testkit/program-env';
import { onTestFinished } from 'vitest';

/** How a command ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs. */
export interface Command {
  readonly child: ChildProcess;
  /** What it printed so far. */
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<Ending>;
}

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/** Runs `main.ts` with these environment variables only; it is killed when the test is over. */
export function runMain(env: Readonly<Record<string, string>>, ...args: string[]): Command {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...programEnv(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
    });
  }
  const ended = new Promise<Ending>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, ...text }));
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, stdout: () => text.stdout, stderr: () => text.stderr, ended };
}
