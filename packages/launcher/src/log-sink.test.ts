import fs from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openLogSink, toReadable } from './log-sink.ts';

describe('the log', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'latchkey-logs-'));
  });
  afterEach(() => rm(dir, { recursive: true }));

  it('stores every line, and shows warnings and errors', async () => {
    const shown: string[] = [];
    const logs = await openLogSink(dir, (line) => shown.push(line));
    logs.write('{"level":30,"service":"apps","msg":"fine"}\n');
    logs.write('{"level":50,"service":"apps","err":{"message":"full\\nstack"},"msg":"not fine"}');
    logs.writeText('redis', 'ready');
    await logs.close();
    expect(shown).toEqual(['apps: not fine (full)']);
    const lines = (await readFile(join(dir, 'latchkey.1.log'), 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['fine', 'not fine', 'ready']);
  });

  it('retains the newest files, five at most', async () => {
    const line = JSON.stringify({ level: 30, msg: 'x'.repeat(8_000) });
    const logs = await openLogSink(dir, () => {}, undefined, '20k');
    for (let next = 2; next <= 8; next += 1) {
      for (let count = 0; count < 3; count += 1) logs.write(line);
      await eventually(async () => expect(await readdir(dir)).toContain(`latchkey.${next}.log`));
    }
    // The library lists the folder and removes without a lock: now and then the oldest of the
    // five goes early.
    const newest = [4, 5, 6, 7, 8].map((number) => `latchkey.${number}.log`);
    await eventually(async () => {
      const kept = (await readdir(dir)).sort();
      expect([newest, newest.slice(1)]).toContainEqual(kept);
    });
    await logs.close();
  });

  it('reports a full disk, and writes the lines of that time once there is space', async () => {
    let reports = 0;
    const logs = await openLogSink(
      dir,
      () => {},
      () => {
        reports += 1;
      },
    );
    const full = vi.spyOn(fs, 'write').mockImplementation(((...args: unknown[]) => {
      const callback = args.at(-1) as (err: Error) => void;
      setImmediate(callback, Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }));
    }) as typeof fs.write);
    logs.writeText('redis', 'meanwhile');
    await eventually(() => expect(reports).toBeGreaterThan(1));
    full.mockRestore();
    const path = join(dir, 'latchkey.1.log');
    await eventually(async () => expect(await readFile(path, 'utf8')).toContain('meanwhile'));
    logs.writeText('redis', 'afterwards');
    await logs.close();
    expect(await readFile(path, 'utf8')).toContain('afterwards');
  });

  it('shows lines other than JSON unchanged', () => {
    expect(toReadable('plain\n')).toBe('plain');
  });
});
