import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, matchesGlob, relative, resolve } from 'node:path';
import { ROOT } from './compose-file.ts';

/** A rule of .dockerignore: what it matches is left out, or, with `!`, let in again. */
interface Rule {
  readonly pattern: string;
  readonly letsIn: boolean;
}

/** The rules of .dockerignore, of which the last that matches a path or a folder above it decides. */
function readRules(): Rule[] {
  const lines = readFileSync(`${ROOT}.dockerignore`, 'utf8').split('\n');
  const rules = lines.filter((line) => line !== '' && !line.startsWith('#'));
  return rules.map((line) => ({ pattern: line.replace(/^!/, ''), letsIn: line.startsWith('!') }));
}

const rules = readRules();

/** Whether a file of the repository goes to the builder. */
export function isSent(path: string): boolean {
  const parts = path.split('/');
  const prefixes = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
  const deciding = rules.findLast(({ pattern }) => prefixes.some((prefix) => matches(prefix, pattern)));
  return deciding?.letsIn ?? true;
}

/** Names with a dot in front are like any other for the builder. */
function matches(path: string, pattern: string): boolean {
  return pattern === '*' ? !path.includes('/') : matchesGlob(path, pattern);
}

/** Files of the repository below a path, without what was installed. */
export function filesBelow(path: string): string[] {
  if (!statSync(join(ROOT, path)).isDirectory()) return [path];
  return readdirSync(join(ROOT, path), { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === 'node_modules') return [];
    const below = join(path, entry.name);
    return entry.isDirectory() ? filesBelow(below) : [below];
  });
}

/** The workspaces by their names. */
function readWorkspaces(): Map<string, string> {
  const folders = [
    'proto',
    'deploy',
    'bench',
    'examples',
    ...['packages', 'services'].flatMap((group) => readdirSync(join(ROOT, group)).map((name) => `${group}/${name}`)),
  ];
  return new Map(folders.map((folder) => [manifestOf(folder).name, folder]));
}

interface Manifest {
  readonly name: string;
  readonly dependencies?: Record<string, string>;
  readonly exports?: Record<string, string>;
}

/** A workspace's manifest. */
export function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
}

const workspaces = readWorkspaces();
const IMPORT =
  /^(?:import|export)(?:[^'";]*?\bfrom)?\s*'([^']+)'|\bimport\('([^']+)'\)|\bnew URL\('([^']+)', import\.meta\.url\)/gm;

/**
 * Every file of ours that a program needs at run time: what it imports, and what that does; and what is named beside `import.meta.url`.
 *
 * @returns those files, and the packages of others by the workspace that names them
 */
export function neededBy(entry: string, seen = { files: new Set<string>(), packages: new Map<string, Set<string>>() }) {
  if (seen.files.has(entry)) return seen;
  seen.files.add(entry);
  if (!/\.[jt]s$/.test(entry)) return seen;
  for (const [, ...names] of runTimeText(entry).matchAll(IMPORT)) {
    const name = names.find((found) => found !== undefined) ?? '';
    if (name.startsWith('node:')) continue;
    const path = pathOf(entry, name);
    if (path) neededBy(path, seen);
    else noteOther(seen.packages, entry, name);
  }
  return seen;
}

/** Those modules of ours among such files that are loaded later than their program, or in a process of their own. */
export function loadedLater(files: Iterable<string>): string[] {
  return [...files].flatMap((file) =>
    [...runTimeText(file).matchAll(IMPORT)]
      .map(([, , imported, named]) => imported ?? named)
      .flatMap((name) => (name === undefined ? [] : (pathOf(file, name) ?? [])))
      .filter((path) => path.endsWith('.ts')),
  );
}

/** A program's text without what is gone once its types are. */
function runTimeText(path: string): string {
  const text = readFileSync(join(ROOT, path), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  return text.replace(/^(import|export) type [\s\S]*?;$/gm, '');
}

function pathOf(from: string, name: string): string | undefined {
  if (name.startsWith('.')) return relative(ROOT, resolve(ROOT, dirname(from), name));
  const [scope, short, ...rest] = name.split('/');
  const folder = workspaces.get(`${scope}/${short}`);
  if (!folder) return undefined;
  const path = rest.join('/');
  if (folder === 'proto') return `proto/gen/${path}.js`;
  return join(folder, manifestOf(folder).exports?.[`./${path}`] ?? `src/${path}.ts`);
}

function noteOther(packages: Map<string, Set<string>>, from: string, name: string): void {
  const folder = [...workspaces.values()].find((workspace) => from.startsWith(`${workspace}/`)) ?? '.';
  const [first = '', second = ''] = name.split('/');
  const names = packages.get(folder) ?? new Set();
  packages.set(folder, names.add(first.startsWith('@') ? `${first}/${second}` : first));
}
