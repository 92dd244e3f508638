import { DiskFullError } from '@latchkey/embedded/process/disk-full';
import type { ProcessExit } from '@latchkey/embedded/process/server-process';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { type Supervisable, supervise } from './supervise.ts';

/** A process that ends when the test says so. */
function createFake(pid: number, lastLines: readonly string[] = []) {
  const { promise: exited, resolve } = Promise.withResolvers<ProcessExit>();
  const crash = () => resolve({ code: 3, signal: null, asked: false, lastLines });
  return { pid, exited, crash, stop: async () => resolve({ code: 0, signal: null, asked: true, lastLines }) };
}
const createCrashed = (pid: number, lastLines: readonly string[] = []) => {
  const fake = createFake(pid, lastLines);
  fake.crash();
  return fake;
};

async function start(startNumber: (attempt: number) => Supervisable, failuresMax = 5, clock = () => 0) {
  const lines: string[] = [];
  let attempts = 0;
  const supervised = await supervise<Supervisable>({
    name: 'It',
    backoffMs: 1,
    failuresMax,
    clock,
    start: async () => startNumber(++attempts),
    onRestart: (line) => lines.push(line),
    onDiskFull: (err) => lines.push(err.message),
    onGiveUp: (line) => lines.push(`gave up: ${line}`),
  });
  return { supervised, lines, attempts: () => attempts };
}

it('a process is started again when it ends, and stays ended when it was stopped', async () => {
  const fakes = [createFake(1), createFake(2)];
  const { supervised, lines, attempts } = await start((attempt) => fakes[attempt - 1] ?? createFake(0));
  fakes[0]?.crash();
  await eventually(() => expect(lines).toEqual(['It ended unexpectedly (exit code 3); starting it again.', 'It runs again.']));
  await supervised.stop();
  expect([supervised.current.pid, attempts(), lines.length]).toEqual([2, 2, 2]);
});

it.each([
  ['can not start', 'did not start: no room', () => Promise.reject(new Error('no room')) as unknown as Supervisable],
  ['never stays', 'ended unexpectedly (exit code 3)', createCrashed],
])('a process that %s is given up after several failures, with the last reason', async (_title, reason, startAgain) => {
  const { lines, attempts } = await start((attempt) => (attempt === 1 ? createCrashed(1) : startAgain(attempt)), 3);
  await eventually(() => expect(lines.at(-1)).toBe(`gave up: It can't be kept running: it ${reason}.`));
  expect(attempts()).toBe(4);
});

it('a run of more than a minute clears the failures before it, and a shorter one does not', async () => {
  let now = 0;
  const runs = [0, 0, 60_001, 0, 0, 60_000];
  const startNumber = (attempt: number): Supervisable => ({
    ...createCrashed(attempt),
    get exited() {
      now += runs[attempt - 1] ?? 0;
      return createCrashed(attempt).exited;
    },
  });
  const { lines, attempts } = await start(startNumber, 3, () => now);
  await eventually(() => expect(lines.at(-1)).toContain('gave up'));
  expect(attempts()).toBe(6);
});

it('a process is tried for as long as its disk is full, and then runs again', async () => {
  const { supervised, lines } = await start((attempt) => {
    // PostgreSQL runs on a full disk until it needs another file.
    const line = 'PANIC:  could not write to file "pg_wal/xlogtemp.1": No space left on device';
    if (attempt < 4) return createCrashed(attempt, [line]);
    if (attempt < 8) throw new DiskFullError('/data');
    return createFake(attempt);
  }, 1);
  await eventually(() => expect(supervised.current.pid).toBe(8));
  const full = Array(4).fill(new DiskFullError('/data').message);
  expect(lines).toEqual(['It runs again.', 'It runs again.', ...full, 'It runs again.']);
  await supervised.stop();
});

it('the error of a first start is thrown', async () => {
  const failing = start(() => {
    throw new Error('no room');
  });
  await expect(failing).rejects.toThrow('no room');
});
