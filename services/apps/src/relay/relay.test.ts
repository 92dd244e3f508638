import { setTimeout as delay } from 'node:timers/promises';
import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/logger';
import type { QueueJob } from '@latchkey/kit/queue';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { refusalOf } from '@latchkey/testkit/refusal';
import { statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { AppsDatabase } from '../db/schema.ts';
import { whileFailing } from '../testing/failing-table.ts';
import { readQueue } from '../testing/queue-reader.ts';
import { eventsOf, insertDeletions, undelivered } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';
import { CONSUMERS } from './consumers.ts';
import { deliverBatch } from './delivery.ts';

let apps: TestApps;
let url: string;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());
beforeEach(async () => {
  await apps.db.query('delete from application_event');
  url = (await testRedis()).url;
});

/** An instance that delivers, until the test ends. */
async function startDelivering() {
  const instance = apps.connect({ env: { REDIS_URL: url } });
  onTestFinished(() => instance.service.stop());
  await instance.service.start();
  return instance;
}

function read() {
  const reader = readQueue(url, 'files');
  onTestFinished(() => reader.stop());
  return reader;
}

const pause = (ref: OwnedRef) =>
  apps.client.updateApplicationSetting({ ...ref, field: 'status', value: { case: 'stringValue', value: 'paused' } });

describe('a deletion', () => {
  it('reaches the queue of files with all that the log says of it, and nothing of it is left on its way', async () => {
    const { client } = await startDelivering();
    const reader = read();
    const ref = await apps.createOwned();
    await client.deleteApplication(ref);
    await eventually(() => expect(reader.jobs).toHaveLength(1));
    const [event] = await eventsOf(apps.db, ref.applicationId);
    const data = { ...ref, id: event?.id, type: 'deleted', sequence: '1', data: {}, createdAt: apps.clock.now().toISOString() };
    expect(reader.jobs).toEqual([{ id: event?.id, name: 'deleted', data }]);
    await eventually(async () => expect(await undelivered(apps.db)).toEqual([]));
  });

  it('is delivered as soon as it is committed, long before the log is looked at by itself', async () => {
    const { client } = await startDelivering();
    const reader = read();
    const waits: number[] = [];
    for (let i = 0; i < 10; i += 1) {
      const ref = await apps.createOwned();
      await client.deleteApplication(ref);
      const startedAt = performance.now();
      await eventually(() => expect(reader.jobs).toHaveLength(i + 1), { intervalMs: 2 });
      waits.push(performance.now() - startedAt);
    }
    const [median = Number.POSITIVE_INFINITY] = waits.toSorted((a, b) => a - b).slice(5);
    expect(median).toBeLessThan(200);
  });

  it('by a process that delivers nothing is delivered by another', async () => {
    await startDelivering();
    const reader = read();
    const ref = await apps.createOwned();
    await apps.client.deleteApplication(ref);
    await eventually(() => expect(reader.applications()).toEqual([ref.applicationId]));
  });

  it('that was not committed is never heard of', async () => {
    const { client } = await startDelivering();
    const reader = read();
    const [failed, done] = [await apps.createOwned(), await apps.createOwned()];
    const failure = {
      table: 'application_event',
      operation: 'insert',
      applicationId: failed.applicationId,
      when: 'commit',
    } as const;
    await whileFailing(apps.db, failure, () => refusalOf(client.deleteApplication(failed)));
    await client.deleteApplication(done);
    await eventually(() => expect(reader.applications()).toEqual([done.applicationId]));
  });
});

describe('an event that no queue wants', () => {
  it('is written as delivered, at the cost of nothing but its row', async () => {
    const ref = await apps.createOwned();
    const sent = await statementsOf(() => pause(ref));
    expect(sent.map(({ text }) => text.split(' ', 1)[0])).toEqual(['begin', 'select', 'update', 'insert', 'commit']);
    await apps.client.rotateRuntimeKey({ ...ref, type: 1 });
    expect(await eventsOf(apps.db, ref.applicationId)).toHaveLength(2);
    expect(await undelivered(apps.db)).toEqual([]);
  });

  it('is marked, and no job made of it, where a process of the release before wrote it', async () => {
    const ref = await apps.createOwned();
    await pause(ref);
    await apps.db.query('update application_event set delivered_at = null');
    const reader = read();
    await startDelivering();
    await eventually(async () => expect(await undelivered(apps.db)).toEqual([]));
    const [deleted] = await insertDeletions(apps.db, 1);
    await eventually(() => expect(reader.applications()).toEqual([deleted]));
  });
});

describe('the log', () => {
  it('is delivered by several at once: every event once or more, none never', async () => {
    const reader = read();
    const expected = await insertDeletions(apps.db, 1_000);
    await Promise.all([startDelivering(), startDelivering(), startDelivering()]);
    await eventually(async () => expect(await undelivered(apps.db)).toEqual([]), { timeoutMs: 10_000 });
    await eventually(() => expect(reader.applications()).toEqual(expected), { timeoutMs: 10_000 });
    expect(reader.jobs.length).toBeLessThan(1_300);
  });

  it('is delivered in batches, each event of it by one relay', async () => {
    await insertDeletions(apps.db, 250);
    const database = createDatabase<AppsDatabase>({ url: apps.url, schema: 'apps', logger: createLogger('apps', 'silent') });
    onTestFinished(() => database.close());
    const batches: Array<readonly QueueJob[]> = [];
    const held: Array<() => void> = [];
    const add = (_: string, jobs: readonly QueueJob[]) => {
      batches.push(jobs);
      return new Promise<void>((resolve) => void held.push(resolve));
    };
    const deliver = () => deliverBatch({ db: database.db, producer: { add }, clock: apps.clock.now });
    const deliveries = [deliver(), deliver(), deliver(), deliver()];
    const ids = () => batches.flat().map(({ id }) => id);
    await eventually(() => ids().length >= 250).finally(() => {
      for (const release of held) release();
    });
    const counts = await Promise.all(deliveries);
    expect(Math.max(...counts)).toBe(100);
    expect([ids().length, new Set(ids()).size]).toEqual([250, 250]);
    expect(await undelivered(apps.db)).toEqual([]);
  });

  it('is looked at with one statement while there is nothing to deliver', async () => {
    const { client } = await startDelivering();
    const reader = read();
    await client.deleteApplication(await apps.createOwned());
    await eventually(() => expect(reader.jobs).toHaveLength(1));
    await eventually(async () => expect(await undelivered(apps.db)).toEqual([]));
    // Nothing is awaited but that next to nothing happens.
    const sent = await statementsOf(() => delay(2_500));
    expect(sent.length).toBeGreaterThanOrEqual(2);
    expect(sent.length).toBeLessThanOrEqual(3);
    expect(new Set(sent.map(({ text }) => text)).size).toBe(1);
    expect(sent[0]?.text).toMatch(/^select "id" from "application_event" where "delivered_at" is null limit/);
  });

  it('is only promised to queues in words that the protocol has', () => {
    const types = new Set(ApplicationEventSchema.fields.map(({ name }) => name));
    const wanted = Object.values(CONSUMERS).flatMap((set) => [...set]);
    expect(wanted.filter((type) => !types.has(type))).toEqual([]);
    expect(wanted.length).toBeGreaterThan(0);
  });
});
