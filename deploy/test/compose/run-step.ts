import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { ROOT } from './compose-file.ts';

/** How a step of a deployment ended, and what it said. */
export interface StepEnd {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs a step with nothing but the given settings, as its container does. */
export async function runStep(name: string, env: Record<string, string>): Promise<StepEnd> {
  const child = spawn(process.execPath, [`deploy/setup/${name}.ts`], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve));
  const [code, output, errors] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, output, errors };
}
