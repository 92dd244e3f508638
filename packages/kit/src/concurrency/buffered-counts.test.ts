import { eventually } from '@latchkey/testkit/eventually';
import { expect, it, onTestFinished } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { createBufferedCounts } from './buffered-counts.ts';

type Batch = ReadonlyArray<{ readonly id: string; readonly reads?: number; readonly writes?: number }>;

function open(deliver: (batch: Batch) => Promise<unknown>, keysMax?: number) {
  const { logger, messages } = memoryLogger();
  const counts = createBufferedCounts<'id', 'reads' | 'writes'>({
    name: 'test',
    key: 'id',
    logger,
    deliver,
    ...(keysMax && { keysMax }),
  });
  onTestFinished(counts.stop);
  return { ...counts, messages };
}

it('delivers the sums of each key once, the rest at the stop', async () => {
  const batches: Batch[] = [];
  const counts = open(async (batch) => void batches.push(batch));
  for (const key of ['a', 'b', 'a']) counts.add(key, 'reads');
  counts.add('a', 'writes', 3);
  counts.start();
  await eventually(() => batches.length === 1);
  counts.add('b', 'reads');
  await counts.stop();
  expect(batches).toEqual([
    [
      { id: 'a', reads: 2, writes: 3 },
      { id: 'b', reads: 1 },
    ],
    [{ id: 'b', reads: 1 }],
  ]);
});

it('delivers again what failed, with what was counted meanwhile, and logs what is lost at the stop', async () => {
  const batches: Batch[] = [];
  const counts = open(async (batch) => {
    batches.push(batch);
    counts.add('a', 'reads');
    throw new Error('away');
  });
  counts.add('a', 'writes');
  counts.start();
  await eventually(() => batches.length === 1);
  await counts.stop();
  expect(batches).toEqual([[{ id: 'a', writes: 1 }], [{ id: 'a', reads: 1, writes: 1 }]]);
  expect(counts.messages()).toContain('counts since the last delivery are lost');
});

it('holds a limited number of keys, and delivers them in batches of 500', async () => {
  const sizes: number[] = [];
  const counts = open(async (batch) => void sizes.push(batch.length), 1_200);
  for (let i = 0; i < 2_000; i += 1) counts.add(`${i}`, 'reads');
  await counts.stop();
  expect(sizes).toEqual([500, 500, 200]);
});
