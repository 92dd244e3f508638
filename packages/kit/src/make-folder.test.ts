import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeFolder } from './make-folder.ts';

async function temporaryFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-folder-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  return dir;
}

it('makes what is missing, with its mode, and says where that begins', async () => {
  const dir = await temporaryFolder();
  expect(await makeFolder(join(dir, 'a/b/c'), 0o700)).toBe(join(dir, 'a'));
  expect((await stat(join(dir, 'a/b/c'))).mode & 0o777).toBe(0o700);
  expect(await makeFolder(join(dir, 'a/b/c'), 0o700)).toBeUndefined();
  expect(await makeFolder(join(dir, 'a/b/d'), 0o700)).toBe(join(dir, 'a/b/d'));
});

it('may be asked for one folder several times at once', async () => {
  const dir = await temporaryFolder();
  await Promise.all(Array.from({ length: 20 }, () => makeFolder(join(dir, 'a/b/c'), 0o700)));
  expect((await stat(join(dir, 'a/b/c'))).isDirectory()).toBe(true);
});

it('fails below a file', async () => {
  const dir = await temporaryFolder();
  await writeFile(join(dir, 'file'), '');
  await expect(makeFolder(join(dir, 'file/a'), 0o700)).rejects.toMatchObject({ code: 'ENOTDIR' });
});

it.runIf(process.platform === 'linux')('fails where a folder can never be, and does not go on for ever', async () => {
  await expect(makeFolder('/proc/latchkey/a', 0o700)).rejects.toMatchObject({ code: 'ENOENT' });
});
