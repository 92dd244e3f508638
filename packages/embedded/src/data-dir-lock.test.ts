import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { acquireDataDirLock } from './data-dir-lock.ts';
import { createDataDir, killHard, launch } from './testing/launcher.ts';

describe('the lock of a data folder', () => {
  let dir: Awaited<ReturnType<typeof createDataDir>>;
  beforeEach(async () => {
    dir = await createDataDir();
  });
  afterEach(() => dir.remove());

  it('rejects a second process, names the first, and is taken over once that was killed', async () => {
    const { process: first } = await launch('lock', dir.path);
    await expect(acquireDataDirLock(dir.path)).rejects.toThrow(`Another Latchkey (pid ${first.pid}) is using ${dir.path}`);
    await killHard(first);
    await (await acquireDataDirLock(dir.path)).release();
    expect(await readdir(dir.path)).toEqual([]);
  });

  it.each(['', 'null', '{"pid":0,"startedAt":""}', JSON.stringify({ pid: process.pid, startedAt: 'earlier' })])(
    'goes to exactly one of many that find it stale: %j',
    async (content) => {
      await writeFile(join(dir.path, 'launcher.lock'), content);
      const results = await Promise.allSettled(Array.from({ length: 8 }, () => acquireDataDirLock(dir.path)));
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    },
  );
});
