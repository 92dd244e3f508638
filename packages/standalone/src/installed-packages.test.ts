import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
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
      /^(vitest|typescript|@typescript|@biomejs|@bufbuild\/buf|playwright-core|kubernetes-models)@/.test(key),
    ),
  ).toEqual([]);
});

it.each([
  ['start', true],
  ['check', false],
])('npm run %s on a fresh checkout leaves out development dependencies: %s', async (task, isProduction) => {
  const root = await mkdtemp(join(tmpdir(), 'latchkey-install-'));
  onTestFinished(() => rm(root, { recursive: true }));
  for (const name of ['scripts', 'package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml'])
    await cp(join(ROOT, name), join(root, name), { recursive: true });
  for (const name of ['bin', 'packages', 'services']) await mkdir(join(root, name));
  // A failed installation prints the output of the package manager.
  await writeFile(join(root, 'bin', 'npx'), '#!/bin/sh\necho "$@"\nexit 1\n', { mode: 0o755 });
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts', 'run.mjs'), task], {
    env: { PATH: join(root, 'bin'), HOME: root },
    encoding: 'utf8',
  });
  expect([status, / install --frozen-lockfile /.test(stderr), /--prod\b/.test(stderr)]).toEqual([1, true, isProduction]);
});
