import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { identifyProcess, isRunning, readCommandLine } from './process-identity.ts';
import { killHard } from './testing/launcher.ts';

it('identifies a process until it ends, and not another one with its pid', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const pid = child.pid as number;
  const identity = identifyProcess(pid);
  expect(identity && isRunning(identity)).toBe(true);
  expect(readCommandLine(pid)).toEqual(['sleep', '60']);
  await killHard(child);
  expect(identity && isRunning(identity)).toBe(false);
  expect(isRunning({ pid: process.pid, startedAt: 'another time' })).toBe(false);
});
