import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { Redis } from 'ioredis';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { QUEUE_PREFIX, type QueueJob } from './queue.ts';
import { WAITING_MAX } from './queue-producer.ts';
import { job, produce, QUEUE, work } from './testing/queues.ts';

let url: string;
let redis: Redis;
beforeEach(async () => {
  url = (await testRedis()).url;
  redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
});

const key = (name: string) => `${QUEUE_PREFIX}:${QUEUE}:${name}`;
const add = (producer: ReturnType<typeof produce>['producer'], ...ids: string[]) =>
  eventually(() =>
    producer.add(
      QUEUE,
      ids.map((id) => job(id)),
    ),
  );

describe('a queue', () => {
  it('gives a worker every job with its data, in order, and keeps nothing of what is done', async () => {
    const { producer } = produce(url);
    await add(producer, 'a-1', 'a-2', 'a-3');
    const seen: unknown[] = [];
    work(url, { concurrency: 1, handle: async (received) => void seen.push(received) });
    await producer.add(QUEUE, [job('a-4', { of: ['any', { kind: null }] })]);
    await eventually(() => expect(seen).toHaveLength(4));
    expect(seen).toEqual([job('a-1'), job('a-2'), job('a-3'), job('a-4', { of: ['any', { kind: null }] })]);
    const left = () => redis.keys(key('a-*'));
    await eventually(async () => expect(await left()).toEqual([]));
    expect((await redis.keys('*')).every((name) => name.startsWith(`${QUEUE_PREFIX}:`))).toBe(true);
  });

  it('gives jobs that have a priority behind those that have none, the smallest first', async () => {
    const { producer } = produce(url);
    await eventually(() => producer.add(QUEUE, [{ ...job('p-1'), priority: 2 }, { ...job('p-2'), priority: 1 }, job('p-3')]));
    await add(producer, 'p-4');
    const { done } = work(url, { concurrency: 1 });
    await eventually(() => expect(done).toEqual(['p-3', 'p-4', 'p-2', 'p-1']));
  });

  it('takes a job once however often it is added while it waits', async () => {
    const { producer } = produce(url);
    await add(producer, 'b-1');
    await Promise.all([add(producer, 'b-1', 'b-2'), add(producer, 'b-2', 'b-1')]);
    const { done } = work(url);
    await add(producer, 'b-3');
    await eventually(() => expect(done).toContain('b-3'));
    expect(done.toSorted()).toEqual(['b-1', 'b-2', 'b-3']);
  });

  it('is worked on by several at once, each job by one of them', async () => {
    const { producer } = produce(url);
    const workers = [work(url), work(url), work(url)];
    const ids = Array.from({ length: 200 }, (_, i) => `c-${i}`);
    await add(producer, ...ids);
    const all = () => workers.flatMap(({ done }) => done);
    await eventually(() => expect(all()).toHaveLength(200));
    expect(all().toSorted()).toEqual(ids.toSorted());
  });

  it('never gives a worker more jobs at once than it takes', async () => {
    const { producer } = produce(url);
    const ends: Array<() => void> = [];
    const { worker } = work(url, { concurrency: 3, handle: () => new Promise<void>((end) => void ends.push(end)) });
    await add(producer, ...Array.from({ length: 10 }, (_, i) => `d-${i}`));
    await eventually(() => expect(ends).toHaveLength(3));
    expect(await redis.llen(key('active'))).toBe(3);
    for (const end of ends.splice(0)) end();
    await eventually(() => expect(ends).toHaveLength(3));
    for (const end of ends) end();
    await worker.stop();
  });

  it('gives a job again that failed, later and later, and logs the first failure only', async () => {
    const { producer } = produce(url);
    const at: number[] = [];
    const { messages } = work(url, {
      async handle() {
        at.push(performance.now());
        if (at.length < 3) throw new Error('not yet');
      },
    });
    await add(producer, 'e-1');
    await eventually(() => expect(at).toHaveLength(3), { timeoutMs: 10_000 });
    const [first = 0, second = 0, third = 0] = at;
    expect(second - first).toBeGreaterThan(700);
    expect(third - second).toBeGreaterThan(1_400);
    await eventually(async () => expect(await redis.exists(key('e-1'))).toBe(0));
    expect(messages()).toEqual(['job failed, and will be tried again']);
  });

  it('keeps a job that failed for good, to be looked at, and says so', async () => {
    const { producer } = produce(url);
    const { messages } = work(url, { handle: () => Promise.reject(new Error('never')) });
    await add(producer, 'f-1');
    await eventually(async () => expect(await redis.zcard(key('delayed'))).toBe(1));
    // As if nine of its ten tries had been made.
    await redis.hset(key('f-1'), 'atm', '9');
    await eventually(async () => expect(await redis.zrange(key('failed'), '0', '-1')).toEqual(['f-1']));
    expect(await redis.hget(key('f-1'), 'failedReason')).toBe('never');
    expect(messages()).toEqual(['job failed, and will be tried again', 'job given up']);
  });

  it('lets a worker that stops end what it has begun, and gives it nothing more', async () => {
    const { producer } = produce(url);
    let end = () => {};
    const begun: string[] = [];
    const handle = ({ id }: QueueJob) => {
      begun.push(id);
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    };
    const { worker } = work(url, { concurrency: 1, handle });
    await add(producer, 'g-1', 'g-2');
    await eventually(() => expect(begun).toEqual(['g-1']));
    const stopped = worker.stop();
    end();
    await stopped;
    expect(begun).toEqual(['g-1']);
    expect(await redis.lrange(key('wait'), 0, -1)).toEqual(['g-2']);
    expect(await redis.exists(key('g-1'))).toBe(0);
  });

  it('has a worker that stops wait as long as it is told to for what it has begun', async () => {
    const { producer } = produce(url);
    let begun = false;
    const handle = () => {
      begun = true;
      return new Promise<void>(() => undefined);
    };
    const { worker } = work(url, { concurrency: 1, handle, stopMsMax: 300 });
    await add(producer, 'k-1');
    await eventually(() => expect(begun).toBe(true));
    const startedAt = performance.now();
    await worker.stop();
    const took = performance.now() - startedAt;
    expect(took).toBeGreaterThanOrEqual(299);
    // Without a word it would be five seconds.
    expect(took).toBeLessThan(3_000);
  });

  it('shows by whom Redis is used, and leaves no connection behind', async () => {
    const { producer } = produce(url);
    const { worker, done } = work(url);
    await add(producer, 'h-1');
    await eventually(() => expect(done).toEqual(['h-1']));
    const db = new URL(url).pathname.slice(1);
    const names = async () => {
      const list = (await redis.client('LIST')) as string;
      const own = list.split('\n').filter((line) => line.includes(` db=${db} `));
      return own.map((line) => / name=(\S*)/.exec(line)?.[1] ?? '').filter((name) => name !== '');
    };
    expect(await names()).toEqual(expect.arrayContaining(['test-producer', 'test-worker']));
    await Promise.all([worker.stop(), producer.close()]);
    await eventually(async () => expect(await names()).toEqual([]));
  });
});

it('a queue that nobody works on takes no more than its bound, says so once, and takes jobs again when somebody does', async () => {
  const { producer, messages } = produce(url);
  await add(producer, 'j-1');
  await redis.rpush(key('wait'), ...Array<string>(WAITING_MAX - 2).fill('j-1'));
  expect(await producer.add(QUEUE, [job('j-2')])).toBe(true);
  for (const id of ['j-3', 'j-4']) expect(await producer.add(QUEUE, [job(id)])).toBe(false);
  expect(await redis.exists(key('j-3'))).toBe(0);
  await redis.ltrim(key('wait'), 0, 0);
  expect(await producer.add(QUEUE, [job('j-5')])).toBe(true);
  expect(messages().filter((message) => String(message).startsWith('queue'))).toEqual([
    'queue is full: nobody works on it',
    'queue is worked on again',
  ]);
});

it('jobs with a priority count for the bound as well', async () => {
  const { producer } = produce(url);
  await add(producer, 'q-1');
  await redis.zadd(key('prioritized'), ...Array.from({ length: WAITING_MAX - 2 }, (_, i) => [i, `q-${i}`]).flat());
  expect(await producer.add(QUEUE, [{ ...job('r-1'), priority: 1 }])).toBe(true);
  expect(await producer.add(QUEUE, [{ ...job('r-2'), priority: 1 }])).toBe(false);
});

it('an unknown queue is refused', async () => {
  const { producer } = produce(url);
  await expect(producer.add('other', [job('i-1')])).rejects.toThrow('There is no queue other here');
});
