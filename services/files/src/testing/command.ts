import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { onTestFinished } from 'vitest';

const LATCHKEY = fileURLToPath(new URL('../../../../deploy/bin/latchkey.ts', import.meta.url));

/** Runs `latchkey admin`, as in the image, with these settings only; it is killed after the test. */
export function runAdmin(env: Readonly<Record<string, string>>, ...args: string[]) {
  const command = [LATCHKEY, 'admin', ...args];
  const child = spawn(process.execPath, command, { env: { ...programEnv(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
    });
  }
  const ended = once(child, 'close').then(([code, signal]) => ({
    code,
    signal,
    ...text,
  }));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, stdout: () => text.stdout, stderr: () => text.stderr, ended };
}
