import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

const START_TIMEOUT_MS = 60_000;

/** A program that is up. */
export interface RunningChild {
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts a program in a process group of its own and waits until a URL answers 200. */
export async function startChild(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  readyUrl: string,
): Promise<RunningChild> {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk).slice(-4_000);
  });
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(readyUrl))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`${command} ${args.join(' ')} did not start:\n${errors}`);
    }
  }
  return { pid: child.pid as number, stop: () => stop(child) };
}

/** Waits until a URL answers 200. */
export async function waitUntilAnswers(url: string): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(url))) {
    if (performance.now() > deadline) throw new Error(`${url} does not answer`);
  }
}

async function answers(url: string): Promise<boolean> {
  const response = await fetch(url).catch(() => undefined);
  await response?.body?.cancel();
  if (!response?.ok) await new Promise((resolve) => setImmediate(resolve));
  return response?.ok ?? false;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}
