import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { onTestFinished } from 'vitest';

/** A command that runs, and what it printed so far. */
export interface Command {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }>;
}

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));
const LATCHKEY = fileURLToPath(new URL('../../../../deploy/bin/latchkey.ts', import.meta.url));

export const runMain = (env: Readonly<Record<string, string>>, ...args: string[]) => run(env, MAIN, ...args);

/** Runs `latchkey admin`, as in the image. */
export const runAdmin = (env: Readonly<Record<string, string>>, ...args: string[]) => run(env, LATCHKEY, 'admin', ...args);

/** Runs a program with these environment variables only; it is killed when the test is over. */
function run(env: Readonly<Record<string, string>>, ...args: string[]): Command {
  const child = spawn(process.execPath, args, { env: { ...programEnv(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
    });
  }
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, ...text }));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, stdout: () => text.stdout, stderr: () => text.stderr, ended };
}

/** The base URL of a service, once its log says that it listens. */
export function listening({ stdout, stderr }: Command): Promise<string> {
  return eventually(
    () => {
      const port = /"port":(\d+)[^\n]*"msg":"listening"/.exec(stdout())?.[1];
      if (port === undefined) throw new Error(`It does not listen: ${stdout()}${stderr()}`);
      return `http://127.0.0.1:${port}`;
    },
    { timeoutMs: 20_000 },
  );
}
