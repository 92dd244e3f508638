import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { type Job, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { onBehalfOf } from '../log/request-context.ts';
import { startMeasuring } from '../telemetry/metrics.ts';
import { job, key, produce, QUEUE, work } from '../testing/queues.ts';
import { QUEUE_PREFIX, type QueueJob } from './job.ts';
import { WAITING_MAX } from './producer.ts';

const metrics = await startMeasuring('test');

let url: string;
let redis: Redis;
let producer: ReturnType<typeof produce>['producer'];
let producerMessages: () => string[];
beforeEach(async () => {
  url = (await testRedis()).url;
  redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  ({ producer, messages: producerMessages } = produce(url));
});

const add = (...jobs: Array<string | QueueJob>) =>
  eventually(() =>
    producer.add(
      QUEUE,
      jobs.map((each) => (typeof each === 'string' ? job(each) : each)),
    ),
  );

/** A handler whose jobs end when the test says so. */
function slowHandler() {
  const started: string[] = [];
  let end = () => {};
  const handle = ({ id }: QueueJob) => {
    started.push(id);
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  };
  return { handle, started, end: () => end() };
}

describe('a worker', () => {
  it('gets every job once with its data, those with a priority last, and leaves no data in Redis', async () => {
    const data = { of: ['any', { kind: null }] };
    await add({ ...job('a-1'), priority: 2 }, { ...job('a-2'), priority: 1 }, job('a-3', data), 'a-4');
    await add('a-3', 'a-4');
    const seen: unknown[] = [];
    work(url, { concurrency: 1, handle: async (received) => void seen.push(received) });
    await eventually(async () => expect(await redis.keys(key('a-*'))).toEqual([]));
    expect(seen).toEqual([job('a-3', data), job('a-4'), job('a-2'), job('a-1')]);
    expect((await redis.keys('*')).every((name) => name.startsWith(`${QUEUE_PREFIX}:`))).toBe(true);
  });

  it('runs a job in the context of the request that added it', async () => {
    const contexts: unknown[] = [];
    const { lines } = work(url, {
      concurrency: 1,
      async handle({ context }) {
        contexts.push(context);
        throw new Error('not yet');
      },
    });
    await onBehalfOf('request-1', () => add('b-1'));
    await onBehalfOf('request-1', () => add({ ...job('b-2'), context: { requestId: 'request-2' } }));
    await add('b-3');
    await eventually(() => expect(lines).toHaveLength(3));
    expect(contexts).toEqual([{ requestId: 'request-1' }, { requestId: 'request-2' }, undefined]);
    expect(lines.map(({ requestId }) => requestId)).toEqual(['request-1', 'request-2', undefined]);
  });

  it('retries a failed job with growing delays, and stores and logs a job that failed for good', async () => {
    const { messages } = work(url, { handle: () => Promise.reject(new Error('never')) });
    const queue = new Queue(QUEUE, { connection: redis, prefix: QUEUE_PREFIX });
    /** Retries immediately, as after this many attempts; returns the delay until then. */
    const retry = async (attemptsMade: number) => {
      await eventually(async () => expect(await queue.getDelayedCount()).toBe(1));
      const [delayed] = (await queue.getDelayed()) as [Job];
      const { delay } = delayed;
      await redis.hset(key('c-1'), 'atm', attemptsMade);
      await delayed.promote();
      return delay;
    };
    await add('c-1');
    const delaysMs = [await retry(1), (await retry(2)) / 2, (await retry(9)) / 4];
    expect(delaysMs.filter((ms) => ms < 750 || ms > 1_250)).toEqual([]);
    const failed = () => redis.zrange(key('failed'), '0', '-1');
    await eventually(async () => expect(await failed()).toEqual(['c-1']));
    expect(messages()).toEqual(['job failed, and will be tried again', 'job given up']);
  });

  it('lets running jobs end when it stops, takes no more, and closes its named connections', async () => {
    const { handle, started, end } = slowHandler();
    const { worker } = work(url, { concurrency: 1, handle });
    await add('d-1', 'd-2');
    await eventually(() => expect(started).toEqual(['d-1']));
    const db = new URL(url).pathname.slice(1);
    const names = async () => {
      const own = String(await redis.client('LIST'))
        .split('\n')
        .filter((line) => line.includes(` db=${db} `));
      return own.map((line) => / name=(\S*)/.exec(line)?.[1] ?? '').filter((name) => name !== '');
    };
    expect(await names()).toEqual(expect.arrayContaining(['test-producer', 'test-worker']));
    const stopped = worker.stop();
    end();
    await stopped;
    expect(started).toEqual(['d-1']);
    expect([await redis.lrange(key('wait'), 0, -1), await redis.exists(key('d-1'))]).toEqual([['d-2'], 0]);
    await producer.close();
    await eventually(async () => expect(await names()).toEqual([]));
  });

  it('waits for running jobs no longer than stopMsMax', async () => {
    const { handle, started } = slowHandler();
    const { worker } = work(url, { handle, stopMsMax: 300 });
    await add('e-1');
    await eventually(() => expect(started).toHaveLength(1));
    const startedAt = performance.now();
    await worker.stop();
    const took = performance.now() - startedAt;
    expect([took >= 299, took < 3_000]).toEqual([true, true]);
  });
});

it('a queue without a worker takes no more than its bound, logs that once, and takes jobs again later', async () => {
  await add('f-1');
  await redis.rpush(key('wait'), ...Array<string>(WAITING_MAX / 2 - 2).fill('f-1'));
  await redis.zadd(key('prioritized'), ...Array.from({ length: WAITING_MAX / 2 }, (_, i) => [i, `p-${i}`]).flat());
  expect(await producer.add(QUEUE, [job('f-2')])).toBe(true);
  for (const id of ['f-3', 'f-4']) expect(await producer.add(QUEUE, [job(id)])).toBe(false);
  expect(await redis.exists(key('f-3'))).toBe(0);
  await redis.ltrim(key('wait'), 0, 0);
  expect(await producer.add(QUEUE, [job('f-5')])).toBe(true);
  const messages = producerMessages().filter((message) => message.startsWith('queue'));
  expect(messages).toEqual(['queue is full: no worker takes its jobs', 'queue takes jobs again']);
});

it('metrics count waiting jobs, and show the age of the oldest one whatever its priority', async () => {
  for (const [id, priority, agoMs] of [
    ['g-1', 7, 90_000],
    ['g-2', 2, 30_000],
    ['g-3', 0, 10_000],
  ] as const) {
    await add({ ...job(id), priority });
    await redis.hset(key(id), 'timestamp', Date.now() - agoMs);
  }
  const text = await metrics.render();
  const read = (series: string) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.split(' ')[1],
    );
  expect(read(`latchkey_queue_jobs{queue="${QUEUE}",state="waiting"}`)).toBe(3);
  const oldestSeconds = read(`latchkey_queue_oldest_waiting_seconds{queue="${QUEUE}"}`);
  expect([oldestSeconds >= 90, oldestSeconds < 120]).toEqual([true, true]);
});
