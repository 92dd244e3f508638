import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { programEnv } from '@latchkey/testkit/program-env';

/** How a process ended. */
export interface Ending {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServiceProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<Ending>;
  /** The log line with that message. Rejects when the process ends without it. */
  logLine(message: string): Promise<Readonly<Record<string, unknown>>>;
}

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/** Runs `main.ts` with these environment variables only, and these arguments. */
export function startProcess(env: Readonly<Record<string, string>>, ...args: string[]): ServiceProcess {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...programEnv(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const ended = new Promise<Ending>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...output }));
  });
  const lines = createInterface({ input: child.stdout });
  const logLine = (message: string) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      lines.on('line', (line) => {
        if (line.includes(`"msg":"${message}"`)) resolve(JSON.parse(line));
      });
      child.on('close', () => reject(new Error(`The process ended without "${message}":\n${output.stdout}${output.stderr}`)));
    });
  return { child, ended, logLine };
}
