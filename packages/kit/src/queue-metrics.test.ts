import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { startMeasuring } from './metrics/instrument.ts';
import { QUEUE_PREFIX } from './queue.ts';
import { job, produce, QUEUE } from './testing/queues.ts';

const recorder = await startMeasuring('test');

/** Reads the value of one metric of the queue, with these labels as well. */
async function read(name: string, labels = ''): Promise<number> {
  const start = `${name}{queue="${QUEUE}"${labels}} `;
  const line = (await recorder.render()).split('\n').find((each) => each.startsWith(start));
  return line === undefined ? Number.NaN : Number(line.slice(start.length));
}

it('jobs with a priority wait like the others, and the oldest of all is told, whatever comes before it', async () => {
  const { url } = await testRedis();
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  const { producer } = produce(url);
  const add = async (id: string, priority: number, agoMs: number) => {
    await eventually(() => producer.add(QUEUE, [{ ...job(id), priority }]));
    await redis.hset(`${QUEUE_PREFIX}:${QUEUE}:${id}`, 'timestamp', Date.now() - agoMs);
  };
  await add('a-1', 7, 90_000);
  await add('a-2', 7, 60_000);
  await add('a-3', 2, 30_000);
  await add('a-4', 0, 10_000);
  expect(await read('latchkey_queue_jobs', ',state="waiting"')).toBe(4);
  const oldest = await read('latchkey_queue_oldest_waiting_seconds');
  expect(oldest).toBeGreaterThanOrEqual(90);
  expect(oldest).toBeLessThan(120);
});
