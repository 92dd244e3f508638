import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it, onTestFinished } from 'vitest';
import { stopAll } from './lifecycle.ts';

const SCRIPT = fileURLToPath(new URL('../testing/lifecycle-process.ts', import.meta.url));

/** Runs a process, and sends it signals, each when it has printed a word. */
async function run(behaviour: string, stopTimeoutMs: number, signals: ReadonlyArray<[word: string, signal: NodeJS.Signals]>) {
  const child = spawn(process.execPath, [SCRIPT, behaviour, String(stopTimeoutMs)], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const exit = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  for (const [word, signal] of signals) {
    await eventually(() => output.includes(word));
    child.kill(signal);
  }
  return { code: await exit, output };
}

it.each<[string, string, number, Array<[string, NodeJS.Signals]>, number, RegExp]>([
  ['stops in order on SIGTERM', 'well', 10_000, [['ready', 'SIGTERM']], 0, /stopped\n.*"msg":"stopping"/],
  ['ends when the stop takes too long', 'stop-hangs', 100, [['ready', 'SIGINT']], 1, /"msg":"stop took too long"/],
  [
    'ends immediately on a second signal',
    'stop-hangs',
    60_000,
    [
      ['ready', 'SIGTERM'],
      ['stopping\n', 'SIGINT'],
    ],
    1,
    /stopping/,
  ],
  ['logs why the stop failed', 'stop-fails', 10_000, [['ready', 'SIGTERM']], 1, /no way/],
  ['logs why the start failed', 'start-fails', 10_000, [], 1, /no database/],
  ['logs an uncaught error', 'uncaught', 10_000, [], 1, /a defect/],
])('a process %s', async (_what, behaviour, stopTimeoutMs, signals, code, output) => {
  const ended = await run(behaviour, stopTimeoutMs, signals);
  expect(ended).toEqual({ code, output: expect.stringMatching(output) });
});

it('stops several things in order, each even if one before it failed', async () => {
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
