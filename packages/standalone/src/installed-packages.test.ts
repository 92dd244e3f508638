import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../../..');

interface Dependencies {
  readonly dependencies?: Record<string, string | { readonly version: string }>;
  readonly optionalDependencies?: Record<string, string | { readonly version: string }>;
}

it('npm start installs no test runner, compiler, linter or browser', () => {
  const lockfile = parse(readFileSync(join(ROOT, 'pnpm-lock.yaml'), 'utf8'));
  const installed = new Set<string>();
  const visit = ({ dependencies, optionalDependencies }: Dependencies) => {
    for (const [name, entry] of Object.entries({ ...dependencies, ...optionalDependencies })) {
      const version = typeof entry === 'string' ? entry : entry.version;
      const key = `${name}@${version}`;
      if (version.startsWith('link:') || installed.has(key)) continue;
      installed.add(key);
      visit(lockfile.snapshots[key] ?? lockfile.snapshots[version]);
    }
  };
  for (const importer of Object.values<Dependencies>(lockfile.importers)) visit(importer);

  expect([...installed].filter((key) => /^(fastify|pg|sharp)@/.test(key))).toHaveLength(3);
  expect(
    [...installed].filter((key) =>
      /^(vitest|vite|typescript|@typescript|@biomejs|@bufbuild\/buf|playwright-core|kubernetes-models)@/.test(key),
    ),
  ).toEqual([]);
});
