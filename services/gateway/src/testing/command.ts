import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { onTestFinished } from 'vitest';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

type LogLine = Readonly<Record<string, unknown>>;

/** Runs the gateway's `main.ts` with only these variables, until the test is over. */
export function runMain(env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [MAIN], { env: { ...programEnv(), ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  /** Lines of the log with a message, so far. */
  const logLines = (message: string) =>
    stdout
      .split('\n')
      .slice(0, -1)
      .map((line): LogLine => JSON.parse(line))
      .filter(({ msg }) => msg === message);
  const listening = () =>
    eventually(
      () => {
        const [line] = logLines('listening');
        if (!line) throw new Error(`It does not listen: ${stdout}`);
        return line;
      },
      { timeoutMs: 30_000 },
    );
  return { stdout: () => stdout, logLines, listening };
}
