import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeFolder } from './make-folder.ts';

it('creates what is missing, with its mode, also concurrently', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-folder-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  await makeFolder(join(dir, 'a/b/c'), 0o700);
  expect((await stat(join(dir, 'a/b/c'))).mode & 0o777).toBe(0o700);
  await makeFolder(join(dir, 'a/b/c'), 0o700);
  await Promise.all(Array.from({ length: 20 }, () => makeFolder(join(dir, 'd/e'), 0o700)));
  expect((await stat(join(dir, 'd/e'))).isDirectory()).toBe(true);
});

it.runIf(process.platform === 'linux')('fails where the file system does, and ends', async () => {
  await expect(makeFolder('/proc/latchkey/a', 0o700)).rejects.toMatchObject({ code: 'ENOENT' });
});
