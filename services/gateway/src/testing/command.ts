import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/program-env';
import { onTestFinished } from 'vitest';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

type LogLine = Readonly<Record<string, unknown>>;

/** Runs the gateway's `main.ts` with only these variables, until the test is over. */
export function runMain(env: Readonly<Record<string, string>>, ...args: string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...programEnv(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
    });
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  /** Lines of the log with a message, so far. */
  const logLines = (message: string) =>
    text.stdout
      .split('\n')
      .slice(0, -1)
      .map((line): LogLine => JSON.parse(line))
      .filter(({ msg }) => msg === message);
  const listening = () =>
    eventually(
      () => {
        const [line] = logLines('listening');
        if (!line) throw new Error(`It does not listen: ${text.stdout}${text.stderr}`);
        return line;
      },
      { timeoutMs: 15_000 },
    );
  return { child, ended, text, logLines, listening };
}
