import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

/** The folder that the Compose file is in. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

type Environment = Readonly<Record<string, string | undefined>>;

/** What the tests look at; the schema knows the rest. */
export interface ComposeService {
  readonly image: string;
  readonly build?: unknown;
  readonly command?: readonly string[];
  readonly user?: string;
  readonly environment?: Record<string, string>;
  readonly env_file?: ReadonlyArray<{ readonly path: string; readonly required?: boolean }>;
  readonly depends_on?: Record<string, { readonly condition: string }>;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly networks: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: ReadonlyArray<string | { readonly source: string; readonly target: string; readonly read_only?: boolean }>;
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly privileged?: boolean;
  readonly security_opt?: readonly string[];
  readonly restart?: string;
  readonly stop_grace_period?: string;
  readonly mem_limit?: string;
  readonly pids_limit?: number;
}

/** A Compose file. */
export interface ComposeFile {
  readonly services: Record<string, ComposeService>;
  readonly networks: Record<string, { readonly internal?: boolean }>;
  readonly volumes: Record<string, unknown>;
}

/** The text of the Compose file, as it is in the repository. */
export function readComposeText(): string {
  return readFileSync(`${ROOT}docker-compose.yml`, 'utf8');
}

/** The Compose file with its anchors, and with variables put in. Throws for a required variable that is missing. */
export function readComposeFile(env: Environment): ComposeFile {
  return interpolate(parseCompose(readComposeText()), env) as ComposeFile;
}

/** The same without variables put in. Names that stand twice in a mapping are refused. */
export function parseCompose(text: string): unknown {
  return parse(text, { merge: true, uniqueKeys: true });
}

/** `$$`, `${NAME}`, `${NAME:-default}` and `${NAME:?message}`: what the file uses of the specification's interpolation. */
const VARIABLE = /\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\}|)/g;

function interpolate(value: unknown, env: Environment): unknown {
  if (typeof value === 'string') return interpolateText(value, env);
  if (Array.isArray(value)) return value.map((item) => interpolate(item, env));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, interpolate(item, env)]));
}

function interpolateText(text: string, env: Environment): string {
  return text.replace(VARIABLE, (all, dollar?: string, name?: string, operator?: string, word = '') => {
    if (dollar) return '$';
    if (name === undefined) throw new Error(`what is not understood: ${all} in ${text}`);
    const value = env[name];
    if (value) return value;
    if (operator === '-') return word;
    throw new Error(`${name} is required: ${word}`);
  });
}

/** The variables that the file can't do without. */
export function requiredVariables(text: string): string[] {
  return [...new Set([...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name as string))].sort();
}

/** A time in Compose's notation, such as `1m30s`, in seconds. */
export function secondsOf(duration: string): number {
  const parts = [...duration.matchAll(/(\d+)(h|m|s)/g)];
  if (parts.map(([part]) => part).join('') !== duration || duration === '') throw new Error(`no duration: ${duration}`);
  return parts.reduce((sum, [, n, unit]) => sum + Number(n) * { h: 3_600, m: 60, s: 1 }[unit as 'h' | 'm' | 's'], 0);
}
