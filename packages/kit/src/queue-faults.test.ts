import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { QUEUE_PREFIX, type QueueJob } from './queue.ts';
import { job, produce, QUEUE, work } from './testing/queues.ts';

const WORKER = fileURLToPath(new URL('./testing/queue-worker-process.ts', import.meta.url));

let redis: OwnRedis;
beforeAll(async () => {
  redis = await startOwnRedis();
  return () => redis.remove();
});
beforeEach(() => redis.empty());

const faults = [
  { what: 'gone', breakIt: () => redis.stop(), mend: () => redis.start() },
  { what: 'frozen', breakIt: async () => redis.freeze(), mend: async () => redis.thaw() },
];

/** What something took, in milliseconds. */
async function timed(call: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await call.catch(() => undefined);
  return performance.now() - startedAt;
}

describe.each(faults)('with Redis $what', ({ what, breakIt, mend }) => {
  let isBroken = false;
  const broken = async () => {
    onTestFinished(() => mended());
    isBroken = true;
    await breakIt();
  };
  const mended = async () => {
    if (isBroken) await mend();
    isBroken = false;
  };

  it('jobs are refused within a second and none is sent later; a second after its return they are taken', async () => {
    const { producer, messages } = produce(redis.url);
    await eventually(() => producer.add(QUEUE, [job('a-1')]));
    await broken();
    await eventually(() =>
      producer.add(QUEUE, [job('a-0')]).then(
        () => false,
        () => messages().length === 1,
      ),
    );
    for (const id of ['a-2', 'a-3', 'a-4']) {
      const call = producer.add(QUEUE, [job(id)]);
      const [outcome, took] = await Promise.all([
        call.then(
          () => 'taken',
          () => 'refused',
        ),
        timed(call),
      ]);
      expect([outcome, took < 2_000]).toEqual(['refused', true]);
    }
    await mended();
    const mendedAt = performance.now();
    await eventually(() => producer.add(QUEUE, [job('a-5')]));
    expect(performance.now() - mendedAt).toBeLessThan(1_500);
    await eventually(() => expect(messages()).toEqual(['redis is unreachable', 'redis is reachable again']));
  });

  it('a worker waits without effort, says so once, and goes on by itself', async () => {
    const { producer } = produce(redis.url);
    const { done, messages } = work(redis.url);
    await eventually(() => producer.add(QUEUE, [job('b-1')]));
    await eventually(() => expect(done).toEqual(['b-1']));
    await broken();
    const [before, startedAt] = [process.cpuUsage(), performance.now()];
    // Nothing is awaited but that nothing happens.
    await delay(4_000);
    const { user, system } = process.cpuUsage(before);
    // A loop without a wait takes all of a core.
    expect((user + system) / 1_000 / (performance.now() - startedAt)).toBeLessThan(0.5);
    await mended();
    await eventually(() => producer.add(QUEUE, [job('b-2')]));
    await eventually(() => expect(done).toEqual(['b-1', 'b-2']), { timeoutMs: 10_000 });
    expect(messages().filter((message) => message === 'redis is unreachable').length).toBeLessThanOrEqual(1);
    expect(messages().filter((message) => !message.startsWith('redis is'))).toEqual([]);
  });

  it('a job that ends meanwhile is not lost, and is done once more at most', async () => {
    const { producer } = produce(redis.url);
    let end = () => {};
    const begun: string[] = [];
    const handle = ({ id }: QueueJob) => {
      begun.push(id);
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    };
    work(redis.url, { handle });
    await eventually(() => producer.add(QUEUE, [job('c-1')]));
    await eventually(() => expect(begun).toEqual(['c-1']));
    await broken();
    end();
    await mended();
    const isDone = () => {
      end();
      return redis.ask(async (client) => (await client.exists(`${QUEUE_PREFIX}:${QUEUE}:c-1`)) === 0);
    };
    await eventually(isDone, { timeoutMs: 25_000, intervalMs: 200 });
    expect(begun.length).toBeLessThanOrEqual(2);
  }, 40_000);

  it('a worker and a producer stop within 6 s, and what is under way may end', async () => {
    const { producer } = produce(redis.url);
    let ended = false;
    const begun: string[] = [];
    const { worker } = work(redis.url, {
      async handle({ id }) {
        begun.push(id);
        await delay(1_500);
        ended = true;
      },
    });
    await eventually(() => producer.add(QUEUE, [job('d-1')]));
    await eventually(() => expect(begun).toEqual(['d-1']));
    await broken();
    const took = await timed(Promise.all([worker.stop(), producer.close()]));
    expect(took).toBeLessThan(6_000);
    expect(ended).toBe(true);
  });

  it('a worker and a producer that never reached it stop at once', async () => {
    await broken();
    const { producer } = produce(redis.url);
    const { worker } = work(redis.url);
    expect(await timed(Promise.all([worker.stop(), producer.close()]))).toBeLessThan(1_000);
  });

  it('a worker that started meanwhile works once it is back', async () => {
    await broken();
    const { producer } = produce(redis.url);
    const { done, messages } = work(redis.url);
    await eventually(() =>
      producer.add(QUEUE, [job('e-0')]).then(
        () => false,
        () => true,
      ),
    );
    if (what === 'gone') await eventually(() => expect(messages()).toEqual(['redis is unreachable']));
    await mended();
    await eventually(() => producer.add(QUEUE, [job('e-1')]));
    await eventually(() => expect(done).toEqual(['e-1']), { timeoutMs: 10_000 });
  });
});

describe('a queue', () => {
  it('goes on after Redis was emptied under it', async () => {
    const { producer } = produce(redis.url);
    const { done } = work(redis.url);
    await eventually(() => producer.add(QUEUE, [job('f-1')]));
    await eventually(() => expect(done).toEqual(['f-1']));
    await redis.empty();
    await redis.ask((client) => client.script('FLUSH'));
    await producer.add(QUEUE, [job('f-2')]);
    await eventually(() => expect(done).toEqual(['f-1', 'f-2']), { timeoutMs: 15_000 });
  });

  it('asks a Redis that refuses no more than a few times a second, and goes on when it takes commands again', async () => {
    const { producer } = produce(redis.url);
    await eventually(() => producer.add(QUEUE, [job('g-1')]));
    await redis.ask((client) => client.config('SET', 'maxmemory', '1'));
    onTestFinished(() => redis.ask(async (client) => void (await client.config('SET', 'maxmemory', '0'))));
    await expect(producer.add(QUEUE, [job('g-2')])).rejects.toThrow('OOM');
    const { done, messages } = work(redis.url);
    const commands = () =>
      redis.ask(async (client) => Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1]));
    await eventually(() => expect(messages()).toEqual(['queue in trouble']));
    const before = await commands();
    await delay(2_000);
    expect((await commands()) - before).toBeLessThan(40);
    expect(messages()).toEqual(['queue in trouble']);
    await redis.ask((client) => client.config('SET', 'maxmemory', '0'));
    await eventually(() => expect(done).toEqual(['g-1']));
  });

  it('gives the job of a process that was killed to another', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'latchkey-queue-'));
    onTestFinished(() => rm(dir, { recursive: true }));
    const path = join(dir, 'taken');
    const child = spawn(process.execPath, [WORKER, redis.url, QUEUE, path], { stdio: 'inherit' });
    onTestFinished(() => void child.kill('SIGKILL'));
    const { producer } = produce(redis.url);
    await eventually(() => producer.add(QUEUE, [job('h-1')]));
    await eventually(async () => expect(await readFile(path, 'utf8')).toBe('h-1'), { timeoutMs: 15_000 });
    child.kill('SIGKILL');
    const { done } = work(redis.url);
    await eventually(() => expect(done).toEqual(['h-1']), { timeoutMs: 18_000 });
  }, 40_000);
});
