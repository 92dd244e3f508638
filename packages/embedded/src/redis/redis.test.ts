import { appendFile, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readCommandLine } from '../process/processes.ts';
import { waitUntil } from '../process/wait-until.ts';
import { CACHE_DIR, createDataDir, killHard, launch } from '../testing/launcher.ts';
import { type EmbeddedRedis, startRedis } from './redis.ts';
import { findRunningRedis } from './running-redis.ts';

async function ask<T>(url: string, use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
  redis.on('error', () => {});
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}

describe('an embedded Redis', { timeout: 60_000 }, () => {
  let dir: Awaited<ReturnType<typeof createDataDir>>;
  let running: EmbeddedRedis[];
  const start = async (options: Partial<Parameters<typeof startRedis>[0]> = {}) => {
    const redis = await startRedis({ dataDir: dir.path, cacheDir: CACHE_DIR, ...options });
    running.push(redis);
    return redis;
  };
  beforeEach(async () => {
    dir = await createDataDir();
    running = [];
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await Promise.all(running.map((redis) => redis.stop()));
    await dir.remove();
  });

  it('restarts with its keys and its URL after a stop and after a kill', async () => {
    const first = await start();
    await ask(first.url, (redis) => redis.set('stopped', 'value'));
    await first.stop();
    const second = await start({ address: first });
    await ask(second.url, (redis) => redis.set('killed', 'value'));
    process.kill(second.pid, 'SIGKILL');
    expect(await second.exited).toMatchObject({ signal: 'SIGKILL', asked: false });
    const third = await start({ address: first });
    expect(third.url).toBe(first.url);
    expect(await ask(third.url, (redis) => redis.mget('stopped', 'killed'))).toEqual(['value', 'value']);
  });

  it('ends with its launcher, also when that is killed and the server suspended', async () => {
    const launcher = await launch('redis', dir.path);
    process.kill(launcher.pid, 'SIGSTOP');
    await killHard(launcher.process);
    expect(await waitUntil(() => readCommandLine(launcher.pid).length === 0, { timeoutMs: 10_000 })).toBe(true);
  });

  it.runIf(process.platform === 'linux')('replaces the server that a killed launcher left, with its keys', async () => {
    const launcher = await launch('redis', dir.path);
    await ask(launcher.url, (redis) => redis.set('key', 'value'));
    await launcher.killLeavingServer();
    expect(await findRunningRedis(dir.path)).toBe(launcher.url);
    const redis = await start();
    expect(await waitUntil(() => readCommandLine(launcher.pid).length === 0, { timeoutMs: 1_000 })).toBe(true);
    expect(await ask(redis.url, (client) => client.get('key'))).toBe('value');
  });

  it('never evicts, writes to the disk, and asks for a password that no command line shows', async () => {
    const redis = await start();
    const setting = (name: string) => ask(redis.url, async (client) => ((await client.config('GET', name)) as string[])[1]);
    expect(await setting('maxmemory-policy')).toBe('noeviction');
    expect(await setting('appendonly')).toBe('yes');
    expect(await setting('bind')).toBe('127.0.0.1');
    await expect(ask(`redis://127.0.0.1:${redis.port}`, (client) => client.get('key'))).rejects.toThrow('NOAUTH');
    expect(readCommandLine(redis.pid).join(' ')).not.toContain(redis.password);
    expect((await stat(join(dir.path, 'redis', 'redis.conf'))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['garbage at the end of the log', (dir: string) => appendFile(join(dir, 'appendonly.aof.1.incr.aof'), 'garbage')],
    ['a damaged list of its files', (dir: string) => appendFile(join(dir, 'appendonly.aof.manifest'), 'garbage')],
    ['a missing file', (dir: string) => rm(join(dir, 'appendonly.aof.1.base.rdb'))],
  ])('sets data aside that it can not load, says so, and starts under the same URL: %s', async (_title, damage) => {
    const first = await start();
    await ask(first.url, (redis) => redis.set('key', 'value'));
    await first.stop();
    await damage(join(dir.path, 'redis', 'appendonlydir'));
    // An earlier one is replaced, so that they never fill the disk.
    await mkdir(join(dir.path, 'redis.damaged'));
    const lines: string[] = [];
    const second = await start({ address: first, onProgress: (line) => lines.push(line) });
    expect(second.url).toBe(first.url);
    expect(await ask(second.url, (redis) => redis.get('key'))).toBeNull();
    expect(lines).toEqual([expect.stringContaining(`It is in ${join(dir.path, 'redis.damaged')} now, and Redis starts empty`)]);
    expect(await readdir(join(dir.path, 'redis.damaged'))).toContain('appendonlydir');
  });

  it('gives advice in one sentence without a Redis, and removes the remains of the attempt', async () => {
    vi.stubEnv('PATH', '/nonexistent');
    await expect(start({ cacheDir: undefined })).rejects.toThrow(
      /^There is no Redis on this machine .*: install redis-server or valkey-server .*, or set REDIS_URL\.$/,
    );
    expect(await readdir(join(dir.path, 'cache'))).toEqual([]);
  });
});
