import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { adviseRedis, readSystem } from './system.ts';

it.each([
  ['ID=fedora\nVERSION_ID=42\n', 'install it with `sudo dnf install valkey`'],
  ['ID="rocky"\nID_LIKE="rhel centos fedora"\n', 'install it with `sudo dnf install valkey`'],
  ['ID=alpine\n', 'install it with `sudo apk add redis`'],
  ['ID=debian\n', 'install it with `sudo apt-get install redis-server`'],
  ['ID=linuxmint\nID_LIKE="ubuntu debian"\n', 'install it with `sudo apt-get install redis-server`'],
  ['ID=unheard-of\n', 'install redis-server or valkey'],
])('names the command that installs Redis: %s', async (text, advice) => {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-system-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const path = join(dir, 'os-release');
  await writeFile(path, text);
  expect(adviseRedis({ ...(await readSystem(path)), platform: 'linux' })).toBe(advice);
});

it('names the command of Homebrew on macOS, which has no list of distributions', async () => {
  const { distributions } = await readSystem('/nonexistent');
  expect(adviseRedis({ distributions, platform: 'darwin' })).toBe('install it with `brew install redis`');
});
