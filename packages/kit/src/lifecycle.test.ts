import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stopAll } from './lifecycle.ts';

const SCRIPT = fileURLToPath(new URL('./testing/lifecycle-process.ts', import.meta.url));

/** Runs a real process, and tells what it printed and how it ended. */
function run(behaviour: string, stopTimeoutMs = 10_000) {
  const child = spawn(process.execPath, [SCRIPT, behaviour, String(stopTimeoutMs)], { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  const collect = (chunk: Buffer) => {
    output += chunk;
    child.emit('printed');
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const exit = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const printed = (text: string) =>
    new Promise<void>((resolve) => {
      const look = () => output.includes(text) && resolve();
      child.on('printed', look);
      look();
    });
  return { child, exit, printed, output: () => output };
}

describe('a process', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('stops in order on %s and ends with 0', async (signal) => {
    const { child, exit, printed, output } = run('well');
    await printed('ready');
    child.kill(signal);
    expect(await exit).toBe(0);
    expect(output()).toContain('stopped');
    expect(output()).toContain('"msg":"stopping"');
  });

  it('ends with 1 when the stop takes too long', async () => {
    const { child, exit, printed, output } = run('stop-hangs', 100);
    await printed('ready');
    child.kill('SIGTERM');
    expect(await exit).toBe(1);
    expect(output()).toContain('"msg":"stop took too long"');
  });

  it('ends at once on a second signal', async () => {
    const { child, exit, printed } = run('stop-hangs', 60_000);
    await printed('ready');
    child.kill('SIGTERM');
    await printed('stopping');
    child.kill('SIGINT');
    expect(await exit).toBe(1);
  });

  it('ends with 1 when the stop fails, and says why', async () => {
    const { child, exit, printed, output } = run('stop-fails');
    await printed('ready');
    child.kill('SIGTERM');
    expect(await exit).toBe(1);
    expect(output()).toContain('no way');
  });

  it('ends with 1 when the start fails, and says why', async () => {
    const { exit, output } = run('start-fails');
    expect(await exit).toBe(1);
    expect(output()).toContain('no database');
  });

  it('ends with 1 on an error that nobody caught, and says which', async () => {
    const { exit, output } = run('uncaught');
    expect(await exit).toBe(1);
    expect(output()).toContain('a defect');
  });
});

describe('stopAll', () => {
  it('stops one after the other, each even if one before it failed', async () => {
    const order: string[] = [];
    const stops = stopAll(
      async () => void order.push('a'),
      () => Promise.reject(new Error('b failed')),
      () => {
        throw new Error('c failed');
      },
      () => order.push('d'),
    );
    const err = await stops.catch((reason: unknown) => reason);
    expect((err as AggregateError).errors.map(({ message }) => message)).toEqual(['b failed', 'c failed']);
    expect(order).toEqual(['a', 'd']);
  });

  it('succeeds with nothing to stop', async () => {
    await expect(stopAll()).resolves.toBeUndefined();
  });
});
