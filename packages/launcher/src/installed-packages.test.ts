import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from 'tar';
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
    [...installed].filter((key) => /^(vitest|typescript|@typescript|@biomejs|@bufbuild\/buf|playwright-core)@/.test(key)),
  ).toEqual([]);
});

const PACKAGE_MANAGER = 'scripts/package-manager.mjs';

/**
 * A checkout without packages. Its npm downloads a package manager that prints its arguments and
 * fails, and `damage` changes that after its hash was committed.
 */
async function makeCheckout(damage = (tarball: Buffer) => tarball) {
  const root = await mkdtemp(join(tmpdir(), 'latchkey-install-'));
  onTestFinished(() => rm(root, { recursive: true }));
  for (const name of ['scripts', 'package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml'])
    await cp(join(ROOT, name), join(root, name), { recursive: true });
  for (const name of ['bin', 'package', 'packages', 'services']) await mkdir(join(root, name));
  await writeFile(join(root, 'package', 'pnpm'), '#!/bin/sh\necho "pnpm $@"\nexit 1\n');
  const file = join(root, 'pnpm.tgz');
  await create({ file, cwd: root, gzip: true, portable: true }, ['package/pnpm']);
  const tarball = await readFile(file);
  const hash = createHash('sha512').update(tarball).digest('base64');
  const text = await readFile(join(root, PACKAGE_MANAGER), 'utf8');
  await writeFile(join(root, PACKAGE_MANAGER), text.replaceAll(/'sha512-.*'/g, `'sha512-${hash}'`));
  await writeFile(file, damage(tarball));
  await writeFile(join(root, 'bin', 'npm'), `#!/bin/sh\necho "npm $@" >&2\n/bin/cp ${file} "$4"\n`, { mode: 0o755 });
  return (task: string) => {
    const env = { PATH: join(root, 'bin'), HOME: root };
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts', 'run.mjs'), task], { env, encoding: 'utf8' });
    expect(existsSync(join(root, 'node_modules', '.cache', 'pnpm'))).toBe(false);
    return { status, stderr };
  };
}

it.each([
  ['start', true],
  ['check', false],
])('npm run %s on a fresh checkout leaves out development dependencies: %s', async (task, isProduction) => {
  const { status, stderr } = (await makeCheckout())(task);
  expect([status, /^pnpm install --frozen-lockfile /m.test(stderr), /--prod\b/.test(stderr)]).toEqual([1, true, isProduction]);
});

it.each([
  ['a changed', (tarball: Buffer) => Buffer.from(tarball.map((byte, at) => (at === 20 ? byte ^ 1 : byte)))],
  ['a longer', (tarball: Buffer) => Buffer.concat([tarball, Buffer.alloc(1)])],
  ['a shorter', (tarball: Buffer) => tarball.subarray(0, -1)],
  ['an empty', () => Buffer.alloc(0)],
])('the installation stops at %s tarball of the package manager, and runs nothing of it', async (_name, damage) => {
  const { status, stderr } = (await makeCheckout(damage))('start');
  expect([status, stderr.split('\n').slice(1)]).toEqual([
    1,
    [
      expect.stringMatching(/^npm pack @pnpm\/exe\.\w+-\w+@[\d.]+ --pack-destination /),
      expect.stringMatching(/^npm downloaded another pnpm .*: check the registry that npm uses\.$/),
      '',
    ],
  ]);
});

it('a hash is committed for every system that Latchkey runs on', () => {
  const text = readFileSync(join(ROOT, PACKAGE_MANAGER), 'utf8');
  const systems = [...text.matchAll(/^ {2}'([\w-]+)': 'sha512-[\w+/]{86}==',$/gm)].map(([, system]) => system);
  expect(systems).toEqual(['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']);
});
