import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { ROOT } from './program.ts';

it('the notes of a release are the section of its version, which is that of the packages', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'latchkey-release-'));
  onTestFinished(() => rm(cwd, { recursive: true }));
  const manifests = ['package.json', 'packages/client/package.json', 'packages/cli/package.json'];
  for (const path of manifests) await cp(join(ROOT, path), join(cwd, path), { recursive: true });
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const changelog = `# Changelog\n\n## Unreleased\n\n## ${version} - 2026-12-01\n\n### Added\n\n- It.\n\n## 0.0.9 - 2026-11-01\n\n- That.\n`;
  await writeFile(join(cwd, 'CHANGELOG.md'), changelog);
  const run = (tag: string) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/release-notes.mjs'), tag], {
      cwd,
      encoding: 'utf8',
    });
    return [status, stdout, stderr];
  };
  expect(run(`v${version}`)).toEqual([0, '### Added\n\n- It.\n', '']);
  expect(run('v0.0.9')).toEqual([1, '', `v0.0.9 is not the version of ${manifests.join(', ')}.\n`]);
  expect(run('v0.0.8')).toEqual([1, '', 'CHANGELOG.md has no section "## 0.0.8 - <date>".\n']);
});

it('workflows name every action by its commit', () => {
  const workflows = readdirSync(join(ROOT, '.github/workflows')).map((name) => join(ROOT, '.github/workflows', name));
  const uses = workflows.flatMap((path) => [...readFileSync(path, 'utf8').matchAll(/uses: (.+)/g)].map(([, action]) => action));
  expect(uses.length).toBeGreaterThan(0);
  for (const action of uses) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
});
