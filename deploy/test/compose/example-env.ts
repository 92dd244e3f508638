import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './compose-file.ts';

/** Runs the command of the documentation on a copy, and gives the variables that it wrote. */
export function makeEnv(): Record<string, string> {
  const dir = mkdtempSync(join(tmpdir(), 'latchkey-compose-'));
  try {
    cpSync(`${ROOT}deploy/compose`, join(dir, 'deploy/compose'), { recursive: true });
    execFileSync('sh', [join(dir, 'deploy/compose/make-env.sh')], { stdio: ['ignore', 'ignore', 'pipe'] });
    return parseEnv(readFileSync(join(dir, '.env'), 'utf8'));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The variables of a file of lines `NAME=value`. */
export function parseEnv(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}
