import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { programEnv } from '@latchkey/testkit/program-env';

/** How a process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The service as a process of its own. */
export interface ServiceProcess {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly ended: Promise<Ending>;
  /** Resolves with the log line that has the message; rejects when the process ends without it. */
  logLine(message: string): Promise<Record<string, unknown>>;
}

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/** Runs `main.ts` with these settings only, and these arguments. */
export function runMain(env: Readonly<Record<string, string>>, ...args: string[]): ServiceProcess {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...programEnv(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ending>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  const find = (message: string) =>
    stdout
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line): Record<string, unknown> => JSON.parse(line))
      .find(({ msg }) => msg === message);
  const logLine = (message: string) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const look = () => {
        const line = find(message);
        if (line) resolve(line);
      };
      look();
      child.stdout.on('data', look);
      child.on('close', () => reject(new Error(`The process ended without "${message}":\n${stdout}${stderr}`)));
    });
  return { child, ended, logLine };
}
