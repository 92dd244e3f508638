import { execFile, execFileSync } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');

const hasGit = (() => {
  try {
    execFileSync('git', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    process.stderr.write('What Git ignores is not tested: there is no git here.\n');
    return false;
  }
})();

// In a repository of its own, as what is tested need not be in one.
describe.skipIf(!hasGit)('.gitignore', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'latchkey-ignored-'));
    await run('git', ['init', '--quiet', dir]);
    await copyFile(join(ROOT, '.gitignore'), join(dir, '.gitignore'));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  const isIgnored = (path: string) =>
    run('git', ['-C', dir, 'check-ignore', '--no-index', '--quiet', path]).then(
      () => true,
      ({ code }) => (code === 1 ? false : expect.fail(`git ended with ${code}`)),
    );

  it.each([
    '.env',
    'deploy/compose/settings.env',
    'deploy/compose/identity.env',
    'deploy/kubernetes/overlays/production/secrets/sealing.env',
    'deploy/kubernetes/overlays/production/secrets/metrics.env',
    'deploy/kubernetes/overlays/staging/secrets/more/any.txt',
  ])('keeps %s, which holds the secrets of a deployment, out of commits', async (path) => {
    expect(await isIgnored(path)).toBe(true);
  });

  it.each([
    'deploy/compose/.env.example',
    'deploy/kubernetes/overlays/example/secrets/sealing.env',
    'deploy/kubernetes/overlays/production/settings.env',
  ])('lets %s be committed, which holds none', async (path) => {
    expect(await isIgnored(path)).toBe(false);
  });
});
