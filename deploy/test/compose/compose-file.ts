import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** The fields that the tests read. */
export interface ComposeService {
  readonly image: string;
  readonly build?: unknown;
  readonly command?: readonly string[];
  readonly environment?: Record<string, string>;
  readonly depends_on?: Record<string, { readonly condition: string }>;
  readonly healthcheck?: { readonly test?: readonly string[] };
  readonly networks: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly restart?: string;
  readonly stop_grace_period?: string;
  readonly mem_limit?: string;
}

export interface ComposeFile {
  readonly services: Record<string, ComposeService>;
  readonly networks: Record<string, { readonly internal?: boolean }>;
  readonly volumes: Record<string, unknown>;
}

export function readComposeText(): string {
  return readFileSync(`${ROOT}docker-compose.yml`, 'utf8');
}

const OPTIONS = { merge: true, uniqueKeys: true };

/** Without variables. Rejects names that occur twice in a mapping. */
export function parseCompose(text: string): unknown {
  return parse(text, OPTIONS);
}

/** The Compose file with variables. Throws for a required variable that is missing. */
export function readComposeFile(env: Readonly<Record<string, string>>): ComposeFile {
  const reviver = (_key: unknown, value: unknown) => (typeof value === 'string' ? interpolate(value, env) : value);
  return parse(readComposeText(), reviver, OPTIONS);
}

/**
 * `$$`, `${NAME}`, `${NAME:-default}` and `${NAME:?message}` of the specification's
 * interpolation.
 */
const VARIABLE = /\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\}|)/g;

function interpolate(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(VARIABLE, (all, dollar?: string, name = '', operator?: string, word = '') => {
    if (dollar) return '$';
    if (name === '') throw new Error(`not supported: ${all} in ${text}`);
    if (env[name]) return env[name];
    if (operator === '-') return word;
    throw new Error(`${name} is required: ${word}`);
  });
}

/** Runs make-env.sh in a copy, and gives the variables that it wrote. */
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
  return Object.fromEntries([...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]));
}
