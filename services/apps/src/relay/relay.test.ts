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
import { eventsOf, insertDeletions, insertVersionChanges, undelivered } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';
import { CONSUMERS, QUEUES } from './consumers.ts';
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

function read(queue = 'files') {
  const reader = readQueue(url, queue);
  onTestFinished(() => reader.stop());
  return reader;
}

const pause = (ref: OwnedRef) =>
  apps.client.updateApplicationSetting({ ...ref, field: 'status', value: { case: 'stringValue', value: 'paused' } });

describe('a deletion', () => {
  it.each(QUEUES)(
    'reaches the queue of %s with all that the log says of it, and nothing of it is left on its way',
    async (queue) => {
      const { client } = await startDelivering();
      const reader = read(queue);
      const ref = await apps.createOwned();
      await client.deleteApplication(ref);
      await eventually(() => expect(reader.jobs).toHaveLength(1));
      const [event] = await eventsOf(apps.db, ref.applicationId);
      const data = { ...ref, id: event?.id, type: 'deleted', sequence: '1', data: {}, createdAt: apps.clock.now().toISOString() };
      expect(reader.jobs).toEqual([{ id: event?.id, name: 'deleted', data }]);
      await eventually(async () => expect(await undelivered(apps.db)).toEqual([]));
    },
  );

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

describe('what live clients hear of', () => {
  it('reaches the queue of realtime, rotations as well, while only deletions concern the others', async () => {
    const { client } = await startDelivering();
    const [reader, files, identity] = [read('realtime'), read('files'), read('identity')];
    const ref = await apps.createOwned();
    const set = (field: string, value: string) =>
      client.updateApplicationSetting({ ...ref, field, value: { case: 'stringValue', value } });
    await set('status', 'paused');
    await set('status', 'online');
    await set('version', '2.0');
    await client.rotateRuntimeKey({ ...ref, type: 1 });
    await client.rotateRuntimeKey({ ...ref, type: 2 });
    await client.deleteApplication(ref);
    const events = await eventsOf(apps.db, ref.applicationId);
    await eventually(() => expect(reader.jobs).toHaveLength(6));
    const jobs = events.map(({ id, type, sequence, data, created_at }) => {
      return { id, name: type, data: { ...ref, id, type, sequence, data, createdAt: created_at.toISOString() } };
    });
    expect(reader.jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(jobs);
    await eventually(async () => expect(await undelivered(apps.db)).toEqual([]));
    for (const other of [files, identity]) await eventually(() => expect(other.jobs).toEqual(jobs.slice(-1)));
  });

  it('is delivered in order of sequence where the clocks of processes differ', async () => {
    const applicationId = await insertVersionChanges(apps.db, 90);
    const reader = read('realtime');
    await startDelivering();
    await eventually(() => expect(reader.jobs).toHaveLength(90));
    expect(reader.applications()).toEqual([applicationId]);
    expect(reader.jobs.map(({ data }) => Number((data as { sequence: string }).sequence))).toEqual(
      Array.from({ length: 90 }, (_, i) => i + 1),
    );
  });

  it('costs its change the writing of one row beside that of the audit log: what the queues take comes after', async () => {
    const ref = await apps.createOwned();
    const sent = await statementsOf(() => pause(ref));
    expect(sent.map(({ text }) => text.split(' ', 1)[0])).toEqual(['begin', 'select', 'update', 'insert', 'insert', 'commit']);
    await apps.client.rotateRuntimeKey({ ...ref, type: 1 });
    const events = await eventsOf(apps.db, ref.applicationId);
    expect(await undelivered(apps.db)).toEqual(events.map(({ id }) => id));
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
    const add = async (queue: string, jobs: readonly QueueJob[]) => {
      if (queue === 'files') {
        batches.push(jobs);
        await new Promise<void>((resolve) => void held.push(resolve));
      }
      return true;
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
    // Nothing is awaited but that next to nothing happens, once what ends the delivery is through.
    const began = performance.now();
    const sent = (await statementsOf(() => delay(3_000))).map(({ text }) => text);
    const look = /^select "id" from "application_event" where "delivered_at" is null limit/;
    const looks = sent.slice(sent.findIndex((text) => look.test(text)));
    expect(looks).toEqual(looks.map(() => expect.stringMatching(look)));
    expect(looks.length).toBeGreaterThanOrEqual(1);
    expect(looks.length).toBeLessThanOrEqual(Math.ceil((performance.now() - began) / 1_000));
  });

  it('is promised to queues in all the words that the protocol has, and no others', () => {
    const types = ApplicationEventSchema.fields.map(({ name }) => name);
    const wanted = new Set(Object.values(CONSUMERS).flatMap((set) => [...set]));
    expect([...wanted].toSorted()).toEqual(types.toSorted());
  });
});
