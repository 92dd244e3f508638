import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { identifyProcess, isRunning, readCommandLine } from './process-identity.ts';
import { killHard } from './testing/launcher.ts';

describe('the identity of a process', () => {
  it('stays the same while the process runs and is gone afterwards', async () => {
    const child = spawn('sleep', ['60'], { stdio: 'ignore' });
    const identity = identifyProcess(child.pid ?? 0);
    expect(identity && isRunning(identity)).toBe(true);
    await killHard(child);
    expect(identity && isRunning(identity)).toBe(false);
  });

  it('differs from that of a process that was given the same pid later', () => {
    expect(isRunning({ pid: process.pid, startedAt: 'another time' })).toBe(false);
  });

  it.each([0, -1, Number.NaN, 2 ** 31])('is nobody for %d', (pid) => {
    expect(identifyProcess(pid)).toBeUndefined();
  });

  it('comes with the arguments the process was started with', async () => {
    const child = spawn('sleep', ['61'], { stdio: 'ignore' });
    await new Promise((resolve) => child.once('spawn', resolve));
    expect(readCommandLine(child.pid ?? 0)).toEqual(['sleep', '61']);
    await killHard(child);
  });
});
