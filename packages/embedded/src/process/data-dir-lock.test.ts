import { rename } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { createDataDir, killHard, launch } from '../testing/launcher.ts';
import { acquireDataDirLock } from './data-dir-lock.ts';

it('the lock of a data folder rejects a second process by any path, names the first, and ends with it', async () => {
  const dir = await createDataDir();
  const { process: first } = await launch('lock', dir.path);
  const moved = `${dir.path}-moved`;
  await rename(dir.path, moved);
  await expect(acquireDataDirLock(moved)).rejects.toThrow(`Another Latchkey (pid ${first.pid}) is using ${moved}`);
  first.kill('SIGSTOP');
  await expect(acquireDataDirLock(moved)).rejects.toThrow('Another Latchkey (pid unknown)');
  await rename(moved, dir.path);
  await killHard(first);
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => acquireDataDirLock(dir.path)));
  const locks = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  expect(locks).toHaveLength(1);
  await locks[0]?.release();
  await (await acquireDataDirLock(dir.path)).release();
  await dir.remove();
});
