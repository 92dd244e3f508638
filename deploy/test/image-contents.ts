import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, matchesGlob, relative, resolve } from 'node:path';
import { ROOT } from './compose/compose-file.ts';

const rules = readFileSync(`${ROOT}.dockerignore`, 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => ({ pattern: line.replace(/^!/, ''), isIncluded: line.startsWith('!') }));

/**
 * True if a file is sent to the builder: the last rule for it, or for a folder above it, decides.
 */
export function isSent(path: string): boolean {
  const parts = path.split('/');
  const prefixes = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
  const matches = (pattern: string) =>
    prefixes.some((prefix) => (pattern === '*' ? !prefix.includes('/') : matchesGlob(prefix, pattern)));
  return rules.findLast(({ pattern }) => matches(pattern))?.isIncluded ?? true;
}

/** Files of the repository below a path, without what was installed. */
export function filesBelow(path: string): string[] {
  if (!statSync(join(ROOT, path)).isDirectory()) return [path];
  const names = readdirSync(join(ROOT, path)).filter((name) => name !== 'node_modules');
  return names.flatMap((name) => filesBelow(join(path, name)));
}

/** A workspace's manifest. */
export function manifestOf(folder: string): { readonly name: string; readonly dependencies?: Record<string, string> } {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
}

const folders = ['packages', 'services'].flatMap((group) => readdirSync(join(ROOT, group)).map((name) => `${group}/${name}`));
const workspaces = new Map(['proto', 'deploy', ...folders].map((folder) => [manifestOf(folder).name, folder]));
const IMPORT =
  /^(?:import|export)(?:[^'";]*?\bfrom)?\s*'([^']+)'|\bimport\('([^']+)'\)|\bnew URL\('([^']+)', import\.meta\.url\)/gm;

interface Needed {
  readonly files: Set<string>;
  /** Packages of others, by the workspace that imports them. */
  readonly packages: Map<string, Set<string>>;
}

/** Files that programs import or name next to `import.meta.url`, with their imports. */
export function neededBy(programs: readonly string[]): Needed {
  const files = new Set(programs);
  const packages: Needed['packages'] = new Map();
  // The set grows while it is read.
  for (const file of files) {
    if (!/\.[jt]s$/.test(file)) continue;
    for (const [, ...names] of readWithoutTypes(file).matchAll(IMPORT)) {
      const name = names.find((found) => found !== undefined) ?? '';
      if (name.startsWith('node:')) continue;
      const path = pathOf(file, name);
      if (path) {
        files.add(path);
        continue;
      }
      const folder = [...workspaces.values()].find((workspace) => file.startsWith(`${workspace}/`)) ?? '.';
      const imported = packages.get(folder) ?? new Set();
      packages.set(folder, imported.add(name.split('/', name.startsWith('@') ? 2 : 1).join('/')));
    }
  }
  return { files, packages };
}

/** The modules that these files load later, or in another process. */
export function loadedLater(files: Iterable<string>): string[] {
  return [...files].flatMap((file) =>
    [...readWithoutTypes(file).matchAll(IMPORT)].flatMap(([, , imported, named]) => {
      const path = pathOf(file, imported ?? named ?? '');
      return path?.endsWith('.ts') ? [path] : [];
    }),
  );
}

function readWithoutTypes(path: string): string {
  const text = readFileSync(join(ROOT, path), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  return text.replace(/^(import|export) type [\s\S]*?;$/gm, '');
}

function pathOf(from: string, name: string): string | undefined {
  if (name.startsWith('.')) return relative(ROOT, resolve(ROOT, dirname(from), name));
  const [scope, short, ...rest] = name.split('/');
  const folder = workspaces.get(`${scope}/${short}`);
  if (!folder) return undefined;
  return folder === 'proto' ? `proto/gen/${rest.join('/')}.js` : `${folder}/src/${rest.join('/') || 'index'}.ts`;
}
