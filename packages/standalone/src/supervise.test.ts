import { DiskFullError } from '@latchkey/embedded/disk-full';
import type { ProcessExit } from '@latchkey/embedded/server-process';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it } from 'vitest';
import { type Supervisable, supervise } from './supervise.ts';

/** A process that ends when the test says so. */
function createFake(pid: number, lastLines: readonly string[] = []) {
  const { promise: exited, resolve } = Promise.withResolvers<ProcessExit>();
  return {
    pid,
    exited,
    crash: () => resolve({ code: 3, signal: null, asked: false, lastLines }),
    stop: async () => resolve({ code: 0, signal: null, asked: true, lastLines }),
  };
}

function setUp(options: { failuresMax?: number; start?: (attempt: number) => Promise<Supervisable> } = {}) {
  const fakes: Array<ReturnType<typeof createFake>> = [];
  const lines: string[] = [];
  let attempts = 0;
  const supervising = supervise<Supervisable>({
    name: 'It',
    backoffMs: 1,
    ...(options.failuresMax === undefined ? {} : { failuresMax: options.failuresMax }),
    start: async () => {
      attempts += 1;
      if (options.start) return options.start(attempts);
      const fake = createFake(attempts);
      fakes.push(fake);
      return fake;
    },
    onRestart: (line) => lines.push(line),
    onDiskFull: (err) => lines.push(err.message.replace(/\. .*/, '.')),
    onGiveUp: (line) => lines.push(`gave up: ${line}`),
  });
  return { supervising, fakes, lines, attempts: () => attempts };
}

describe('a supervised process', () => {
  it('is started again when it ends by itself', async () => {
    const { supervising, fakes, lines } = setUp();
    const supervised = await supervising;
    fakes[0]?.crash();
    await eventually(() => supervised.current.pid === 2);
    await eventually(() => expect(lines).toEqual(['It ended unexpectedly (exit code 3); starting it again.', 'It runs again.']));
    await supervised.stop();
  });

  it('stays ended when it was stopped', async () => {
    const { supervising, attempts, lines } = setUp();
    await (await supervising).stop();
    expect(attempts()).toBe(1);
    expect(lines).toEqual([]);
  });

  it('is given up once it failed too often in a row, with the last reason', async () => {
    const { supervising, lines, attempts } = setUp({
      failuresMax: 3,
      start: async (attempt) => {
        if (attempt > 1) throw new Error('no room');
        const fake = createFake(1);
        fake.crash();
        return fake;
      },
    });
    await supervising;
    await eventually(() => expect(lines.at(-1)).toBe("gave up: It can't be kept running: it did not start: no room."));
    expect(attempts()).toBe(4);
  });

  it('is given up when it starts but never stays', async () => {
    const { supervising, lines, attempts } = setUp({
      failuresMax: 3,
      start: async () => {
        const fake = createFake(1);
        fake.crash();
        return fake;
      },
    });
    await supervising;
    await eventually(() => expect(lines.at(-1)).toMatch(/^gave up/));
    expect(attempts()).toBe(4);
  });

  it('is tried for as long as its disk is full, and then runs again', async () => {
    const { supervising, lines } = setUp({
      failuresMax: 1,
      start: async (attempt) => {
        // It runs at first, and later for a moment each time, as PostgreSQL does until it needs
        // another file.
        if (attempt < 4) {
          const fake = createFake(attempt, ['PANIC:  could not write to file "pg_wal/xlogtemp.1": No space left on device']);
          fake.crash();
          return fake;
        }
        if (attempt < 8) throw new DiskFullError('/data');
        return createFake(attempt);
      },
    });
    const supervised = await supervising;
    await eventually(() => expect(supervised.current.pid).toBe(8));
    const full = Array(4).fill('The disk that holds /data is full.');
    expect(lines).toEqual(['It runs again.', 'It runs again.', ...full, 'It runs again.']);
    await supervised.stop();
  });

  it('passes on what keeps it from starting the first time', async () => {
    const { supervising } = setUp({ start: () => Promise.reject(new Error('no room')) });
    await expect(supervising).rejects.toThrow('no room');
  });
});
