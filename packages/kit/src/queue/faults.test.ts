import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { job, produce, QUEUE, work } from '../testing/queues.ts';

const WORKER = fileURLToPath(new URL('../testing/queue-worker-process.ts', import.meta.url));

let redis: OwnRedis;
beforeAll(async () => {
  redis = await startOwnRedis();
  return () => redis.remove();
});
beforeEach(() => redis.empty());

const faults = [
  { fault: 'stopped', inject: () => redis.stop(), repair: () => redis.start() },
  { fault: 'frozen', inject: async () => redis.freeze(), repair: async () => redis.thaw() },
];

async function timed(call: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await call.catch(() => undefined);
  return performance.now() - startedAt;
}

describe.each(faults)('while Redis is $fault', ({ inject, repair }) => {
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

  it('jobs are refused within a second, and are taken and processed after its return', async () => {
    const { producer, messages } = produce(redis.url);
    const { done } = work(redis.url);
    await eventually(() => producer.add(QUEUE, [job('a-1')]));
    await eventually(() => expect(done).toEqual(['a-1']));
    const repaired = await breakRedis();
    const refused = () =>
      producer.add(QUEUE, [job('a-2')]).then(
        () => false,
        () => messages().length === 1,
      );
    await eventually(refused);
    expect(await timed(producer.add(QUEUE, [job('a-2')]))).toBeLessThan(2_000);
    const { done: doneByNew } = work(redis.url);
    await repaired();
    const repairedAt = performance.now();
    await eventually(() => producer.add(QUEUE, [job('a-3')]));
    expect(performance.now() - repairedAt).toBeLessThan(1_500);
    await eventually(() => expect([...done, ...doneByNew]).toEqual(['a-1', 'a-3']), { timeoutMs: 10_000 });
    await eventually(() => expect(messages()).toEqual(['redis is unreachable', 'redis is reachable again']));
  });

  it('a worker and a producer stop within 6 s, and a running job may end', async () => {
    const { producer } = produce(redis.url);
    const { promise: started, resolve: start } = Promise.withResolvers<void>();
    let hasEnded = false;
    const { worker } = work(redis.url, {
      async handle() {
        start();
        await delay(1_000);
        hasEnded = true;
      },
    });
    await eventually(() => producer.add(QUEUE, [job('b-1')]));
    await started;
    await breakRedis();
    expect(await timed(Promise.all([worker.stop(), producer.close()]))).toBeLessThan(6_000);
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
  await delay(1_000);
  expect((await commands()) - before).toBeLessThan(25);
  expect(messages()).toEqual(['queue in trouble']);
  await limitMemory('0');
  await eventually(() => expect(done).toEqual(['c-1']));
});

it('the job of a killed process goes to another one', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-queue-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const path = join(dir, 'taken');
  const child = spawn(process.execPath, [WORKER, redis.url, QUEUE, path], { stdio: 'inherit' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const { producer } = produce(redis.url);
  await eventually(() => producer.add(QUEUE, [job('d-1')]));
  await eventually(async () => expect(await readFile(path, 'utf8')).toBe('d-1'), { timeoutMs: 15_000 });
  child.kill('SIGKILL');
  const { done } = work(redis.url);
  await eventually(() => expect(done).toEqual(['d-1']), { timeoutMs: 18_000 });
}, 40_000);
