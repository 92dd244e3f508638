import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createLogger } from '@latchkey/kit/logger';
import type { QueueJob } from '@latchkey/kit/queue';
import { createQueueProducer, type QueueProducer } from '@latchkey/kit/queue-producer';
import { eventually } from '@latchkey/testkit/eventually';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { createFakeDeletions } from '../../testing/fake-deletions.ts';
import { forgotten, insertFiles, remainsOf } from '../../testing/remains.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { createListDeleted } from './deleted-application.client.ts';
import { createDeletionConsumer } from './deleted-application.consumer.ts';
import { createDeletionCatchUp } from './deletion-catch-up.ts';

let files: TestFiles;
let redis: OwnRedis;
let producer: QueueProducer;
beforeAll(async () => {
  [files, redis] = await Promise.all([startTestFiles(), startOwnRedis()]);
  const logger = createLogger('producer', 'silent');
  producer = createQueueProducer({ url: redis.url, name: 'test-producer', queues: ['files'], logger });
  producer.connect();
});
afterAll(async () => {
  await producer.close();
  await Promise.all([files.stop(), redis.remove()]);
});
beforeEach(() => redis.empty());

async function ownedWith(fileCount: number): Promise<OwnedRef> {
  const ref = files.createOwned();
  await insertFiles(files.db, ref, fileCount);
  return ref;
}

/** The job that the apps service adds for a deletion. */
function deletion(ref: OwnedRef): QueueJob {
  const id = randomUUID();
  const data = { ...ref, id, type: 'deleted', sequence: '7', data: {}, createdAt: new Date().toISOString() };
  return { id, name: 'deleted', data };
}

const add = (...jobs: QueueJob[]) => eventually(() => producer.add('files', jobs));
const allForgotten = async (refs: readonly OwnedRef[], fileCount: number) => {
  const remains = await Promise.all(refs.map(({ applicationId }) => remainsOf(files.db, applicationId)));
  expect(remains).toEqual(refs.map(() => forgotten(fileCount)));
};

/** A consumer until the test ends, and what it logged. */
function consume(onObjectsToRemove = () => {}) {
  const lines: string[] = [];
  const logger = createLogger('files', 'info', { write: (line) => void lines.push(JSON.parse(line).msg) });
  const consumer = createDeletionConsumer({ ...files.ctx, logger }, redis.url, onObjectsToRemove);
  onTestFinished(() => consumer.stop());
  consumer.start();
  return { consumer, lines };
}

const count = (state: string) => redis.ask((client) => client.llen(`latchkey:queue:files:${state}`));

describe('a job of a deletion', () => {
  it('makes the application forgotten, and the objects are told of', async () => {
    const ref = await ownedWith(3);
    let calls = 0;
    consume(() => {
      calls += 1;
    });
    await add(deletion(ref));
    await eventually(() => allForgotten([ref], 3));
    await eventually(() => expect(calls).toBe(1));
  });

  it('is tried again until the database bears it', async () => {
    const ref = await ownedWith(2);
    await files.db.query('alter table deleted_application rename to deleted_application_away');
    const { lines } = consume();
    await add(deletion(ref));
    await eventually(() => expect(lines).toContain('job failed, and will be tried again')).finally(() =>
      files.db.query('alter table deleted_application_away rename to deleted_application'),
    );
    await eventually(() => allForgotten([ref], 2), { timeoutMs: 10_000 });
  });

  it.each([{}, { applicationId: 'x', accountId: randomUUID() }, { applicationId: randomUUID() }])(
    'that makes no sense harms nobody, and is kept to be looked at: %j',
    async (data) => {
      const ref = await ownedWith(1);
      const { lines } = consume();
      await add({ id: randomUUID(), name: 'deleted', data }, deletion(ref));
      await eventually(() => allForgotten([ref], 1));
      await eventually(() => expect(lines).toContain('job failed, and will be tried again'));
      await eventually(async () => expect(await redis.ask((client) => client.zcard('latchkey:queue:files:delayed'))).toBe(1));
    },
  );

  it('is the only kind that anything is done for', async () => {
    const [paused, deleted] = [await ownedWith(1), await ownedWith(1)];
    consume();
    await add({ ...deletion(paused), name: 'paused' }, deletion(deleted));
    await eventually(() => allForgotten([deleted], 1));
    await eventually(async () => expect(await redis.ask((client) => client.keys('latchkey:queue:files:*-*-*'))).toEqual([]));
    expect(await remainsOf(files.db, paused.applicationId)).toMatchObject({ files: 1, isMarked: false });
  });
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** What is really held in memory. */
function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe('a thousand deletions', () => {
  it('are worked on two at a time by each process, in bounded memory, and none is left', async () => {
    const refs = await Promise.all(Array.from({ length: 1_000 }, () => ownedWith(2)));
    for (let i = 0; i < refs.length; i += 100) await add(...refs.slice(i, i + 100).map(deletion));
    const before = heapBytes();
    let most = 0;
    let heapMax = 0;
    consume();
    await eventually(
      async () => {
        most = Math.max(most, await count('active'));
        heapMax = Math.max(heapMax, heapBytes());
        return (await count('wait')) + (await count('active')) === 0;
      },
      { timeoutMs: 90_000, intervalMs: 100 },
    );
    await allForgotten(refs, 2);
    expect(most).toBe(2);
    expect((heapMax - before) / 2 ** 20).toBeLessThan(16);
  }, 120_000);
});

describe('with Redis', () => {
  it('gone and back, jobs that were in it are done', async () => {
    const refs = await Promise.all(Array.from({ length: 5 }, () => ownedWith(1)));
    await add(...refs.map(deletion));
    await redis.stop();
    const { lines } = consume();
    await eventually(() => expect(lines).toContain('redis is unreachable')).finally(() => redis.start());
    await eventually(() => allForgotten(refs, 1), { timeoutMs: 10_000 });
  });

  it('emptied with jobs in it, a look for deletions does what they were for', async () => {
    const refs = await Promise.all(Array.from({ length: 5 }, () => ownedWith(1)));
    await add(...refs.map(deletion));
    await redis.empty();
    const { lines } = consume();
    const later = await ownedWith(1);
    await add(deletion(later));
    await eventually(() => allForgotten([later], 1));
    expect((await remainsOf(files.db, refs[0]?.applicationId ?? '')).isMarked).toBe(false);
    const deletions = createFakeDeletions();
    for (const ref of refs) deletions.add(ref, files.clock.now());
    await createDeletionCatchUp(files.ctx, createListDeleted(deletions.transport), () => {})(new AbortController().signal);
    await allForgotten(refs, 1);
    expect(lines.filter((line) => line.startsWith('job'))).toEqual([]);
  });
});
