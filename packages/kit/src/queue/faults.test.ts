import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { startOwnRedis } from '@latchkey/testkit/redis/own-redis';
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { job, key, produce, QUEUE, work } from '../testing/queues.ts';

const redis = await startOwnRedis();
afterAll(() => redis.remove());
beforeEach(() => redis.empty());

async function timed(call: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await call.catch(() => undefined);
  return performance.now() - startedAt;
}

describe.each([
  { fault: 'stopped', inject: () => redis.stop(), repair: () => redis.start() },
  { fault: 'frozen', inject: async () => redis.freeze(), repair: async () => redis.thaw() },
])('while Redis is $fault', ({ inject, repair }) => {
  async function breakRedis() {
    let isBroken = true;
    const repairOnce = async () => {
      if (isBroken) await repair();
      isBroken = false;
    };
    onTestFinished(repairOnce);
    await inject();
    return repairOnce;
  }

  it('jobs are rejected within a second, and are taken and processed after its return', async () => {
    const { producer, messages } = produce(redis.url);
    const { done } = work(redis.url);
    await eventually(() => producer.add(QUEUE, [job('a-1')]));
    await eventually(() => expect(done).toEqual(['a-1']));
    const repairRedis = await breakRedis();
    const isRejected = () =>
      producer.add(QUEUE, [job('a-2')]).then(
        () => false,
        () => messages().length === 1,
      );
    await eventually(isRejected);
    expect(await timed(producer.add(QUEUE, [job('a-2')]))).toBeLessThan(2_000);
    const { done: doneByNew } = work(redis.url);
    await repairRedis();
    expect(await timed(eventually(() => producer.add(QUEUE, [job('a-3')])))).toBeLessThan(1_500);
    await eventually(() => expect([...done, ...doneByNew]).toEqual(['a-1', 'a-3']), { timeoutMs: 10_000 });
    await eventually(() => expect(messages()).toEqual(['redis is unreachable', 'redis is reachable again']));
  });

  it('a worker and a producer stop within stopMsMax and a second, and a running job may end', async () => {
    const { producer } = produce(redis.url);
    const started = Promise.withResolvers<void>();
    const ending = Promise.withResolvers<void>();
    let hasEnded = false;
    const { worker } = work(redis.url, {
      stopMsMax: 500,
      async handle() {
        started.resolve();
        await ending.promise;
        hasEnded = true;
      },
    });
    await eventually(() => producer.add(QUEUE, [job('b-1')]));
    await started.promise;
    await breakRedis();
    const stopped = timed(Promise.all([worker.stop(), producer.close()]));
    ending.resolve();
    expect(await stopped).toBeLessThan(1_500);
    expect(hasEnded).toBe(true);
  });
});

it('a worker asks a full Redis a few times a second at most, and goes on when there is room', async () => {
  const { producer } = produce(redis.url);
  await eventually(() => producer.add(QUEUE, [job('c-1')]));
  const limitMemory = (bytes: string) => redis.ask(async (client) => void (await client.config('SET', 'maxmemory', bytes)));
  await limitMemory('1');
  onTestFinished(() => limitMemory('0'));
  await expect(producer.add(QUEUE, [job('c-2')])).rejects.toThrow('OOM');
  const { done, messages } = work(redis.url);
  const commands = () =>
    redis.ask(async (client) => Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1]));
  await eventually(() => expect(messages()).toEqual(['queue in trouble']));
  const before = await commands();
  await delay(300);
  expect((await commands()) - before).toBeLessThan(20);
  expect(messages()).toEqual(['queue in trouble']);
  await limitMemory('0');
  await eventually(() => expect(done).toEqual(['c-1']));
});

it('the job of a dead process, whose lock has expired, goes to another one', async () => {
  const { producer } = produce(redis.url);
  const started = Promise.withResolvers<void>();
  work(redis.url, { stopMsMax: 0, handle: () => new Promise<void>(() => started.resolve()) });
  await eventually(() => producer.add(QUEUE, [job('d-1')]));
  await started.promise;
  await redis.ask(async (client) => {
    await client.del(key('d-1:lock'), key('stalled-check'));
    await client.sadd(key('stalled'), 'd-1');
  });
  const { done } = work(redis.url);
  await eventually(() => expect(done).toEqual(['d-1']));
});
