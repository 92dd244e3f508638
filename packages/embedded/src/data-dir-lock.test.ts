import { spawn } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
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

  it('refuses a second process and names the first', async () => {
    const first = await launch('lock', dir.path);
    try {
      await expect(acquireDataDirLock(dir.path)).rejects.toThrow(`Another Latchkey (pid ${first.pid}) is using ${dir.path}`);
    } finally {
      await first.kill();
    }
  });

  it('is taken over from a process that was killed', async () => {
    const first = await launch('lock', dir.path);
    await first.kill();
    const lock = await acquireDataDirLock(dir.path);
    await lock.release();
    expect(await readdir(dir.path)).toEqual([]);
  });

  it('is taken over when the pid in it now belongs to another process', async () => {
    const stranger = spawn('sleep', ['60'], { stdio: 'ignore' });
    try {
      await writeFile(join(dir.path, 'launcher.lock'), JSON.stringify({ pid: stranger.pid, startedAt: 'earlier', token: 'x' }));
      await acquireDataDirLock(dir.path);
      expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
    } finally {
      await killHard(stranger);
    }
  });

  it.each(['', '{"pid":', 'null', '{"pid":0,"startedAt":""}'])('is taken over when it holds rubbish: %j', async (content) => {
    await writeFile(join(dir.path, 'launcher.lock'), content);
    await acquireDataDirLock(dir.path);
  });

  it('goes to exactly one of many that find a stale one', async () => {
    await writeFile(join(dir.path, 'launcher.lock'), JSON.stringify({ pid: 1, startedAt: 'earlier' }));
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => acquireDataDirLock(dir.path)));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('is not released by one who no longer holds it', async () => {
    const path = join(dir.path, 'launcher.lock');
    const lock = await acquireDataDirLock(dir.path);
    await writeFile(path, 'of somebody else');
    await lock.release();
    expect(await readFile(path, 'utf8')).toBe('of somebody else');
  });
});
