import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const BUILD = join(import.meta.dirname, '../../scripts/build.ts');

it('the published package runs by itself, and its completion scripts are valid', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-cli-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  expect(spawnSync(process.execPath, [BUILD, dir], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
  const { version, dependencies, bin } = JSON.parse(await readFile(join(dir, 'package.json'), 'utf8'));
  expect(dependencies).toBeUndefined();
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(dir, bin.latchkey), ...args], { cwd: dir, env: { HOME: dir }, encoding: 'utf8' });
  expect(run('--version')).toMatchObject({ status: 0, stdout: `${version}\n` });
  expect(run('listen')).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining('Which application?') });
  expect(run('complete', '--', 'apps', 'pa')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^pause\t.*\n$/) });
  // The shell quotes a name with spaces.
  const script = `${run('completion', 'bash').stdout}latchkey() { echo "Difference Engine"; }
    COMP_WORDS=(latchkey apps pause Diff) COMP_CWORD=3; _latchkey; echo "$COMPREPLY"`;
  expect(spawnSync('bash', [], { input: script, encoding: 'utf8' })).toMatchObject({
    status: 0,
    stdout: 'Difference\\ Engine\n',
    stderr: '',
  });
});

it.skipIf(!existsSync('/dev/full'))('ends with code 1 where its output cannot be written', () => {
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const args = [join(import.meta.dirname, '../main.ts'), 'completion', 'bash'];
  expect(spawnSync(process.execPath, args, { stdio: ['ignore', full, 'pipe'], encoding: 'utf8' })).toMatchObject({
    status: 1,
    stderr: "Standard output can't be written (ENOSPC).\n",
  });
});
