import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const VITEST = join(import.meta.dirname, '../../../../node_modules/vitest/vitest.mjs');
const REPORTER = join(import.meta.dirname, 'skipped-tests.ts');

it('a run ends with its skipped tests and what they need, unless they were filtered by name', async () => {
  const root = await mkdtemp(join(tmpdir(), 'latchkey-skipped-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await writeFile(
    join(root, 'page.test.js'),
    `describe('a page', { skip: true, meta: { needs: 'a browser' } }, () => { it('opens', () => {}); it('closes', () => {}); });
    it('a disk', ({ skip }) => skip('a mount'));
    it('a file', () => {});`,
  );
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [VITEST, 'run', '--root', root, '--globals', '--reporter', REPORTER, ...args], {
      encoding: 'utf8',
    });
  expect(run().stdout).toBe(
    'Skipped 2 tests. Needed: a browser\n  page.test.js > a page\nSkipped 1 test. Needed: a mount\n  page.test.js > a disk\n',
  );
  expect(run('-t', 'a file')).toMatchObject({ status: 0, stdout: '' });
});
