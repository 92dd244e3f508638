import { whileFailing } from '@latchkey/audit/testing/failing-table';
import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/log/logger';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { createEventPublisher, type PublishedEvent } from '@latchkey/kit/redis/live-channels';
import { channelOf, Redis } from '@latchkey/kit/redis/redis';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/redis/own-redis';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { readQueue } from '../testing/queue-reader.ts';
import { eventsOf, insertDeletions, insertVersionChanges, undelivered } from '../testing/rows.ts';
import { range, useTestApps } from '../testing/test-apps.ts';
import { createRelay, QUEUES } from './relay.ts';

const apps = useTestApps();
let redis: OwnRedis;
beforeAll(async () => {
  redis = await startOwnRedis();
});
afterAll(() => redis.remove());
beforeEach(async () => {
  await apps.db.query('delete from application_event');
  await redis.empty();
});

/** An instance that delivers, until the test ends. */
async function startDelivering() {
  const instance = apps.connect({ env: { REDIS_URL: redis.url } });
  onTestFinished(() => instance.service.stop());
  await instance.service.start();
  return instance;
}

function read(queue = 'files') {
  const reader = readQueue(redis.url, queue);
  onTestFinished(() => reader.stop());
  return reader;
}

/** Stores what is published from now on. */
async function listen(): Promise<PublishedEvent[]> {
  const events: PublishedEvent[] = [];
  const subscriber = new Redis(redis.url);
  onTestFinished(() => subscriber.disconnect());
  subscriber.on('pmessage', (_pattern, channel: string, text: string) => {
    const event = JSON.parse(text);
    if (channel === channelOf(subscriber, 'realtime', event.applicationId)) events.push(event);
  });
  await subscriber.psubscribe('*');
  return events;
}

const allDelivered = () => eventually(async () => expect(await undelivered(apps.db)).toEqual([]), { timeoutMs: 10_000 });

describe('the relay', () => {
  it('publishes every type of event, and adds deletions to all queues', async () => {
    const { client } = await startDelivering();
    const [published, readers] = [await listen(), QUEUES.map((queue) => read(queue))];
    const ref = await apps.createOwned();
    const setText = (field: string, value: string) =>
      client.updateApplicationSetting({ ...ref, field, value: { case: 'stringValue', value } });
    await setText('status', 'paused');
    await setText('status', 'online');
    await setText('version', '2.0');
    await client.rotateRuntimeKey({ ...ref, type: 1 });
    await client.deleteApplication(ref);
    const { epoch } = (await apps.db.query('select epoch from event_log')).rows[0];
    const events = (await eventsOf(apps.db, ref)).map(({ id, type, sequence, data, created_at }) => {
      return { id, applicationId: ref.applicationId, type, epoch, sequence, data, createdAt: created_at.toISOString() };
    });
    const types = ApplicationEventSchema.fields.map(({ name }) => name);
    expect(events.map(({ type }) => type).toSorted()).toEqual(types.toSorted());
    await eventually(() => expect(published.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(events));
    const deletion = { id: events.at(-1)?.id, name: 'deleted', data: { ...events.at(-1), ...ref } };
    for (const { jobs } of readers) await eventually(() => expect(jobs).toEqual([deletion]));
    await allDelivered();
  });

  it('delivers an event when it is committed, not at the next poll', async () => {
    const { client } = await startDelivering();
    const reader = read();
    const waits: number[] = [];
    for (const count of range(1, 9)) {
      await client.deleteApplication(await apps.createOwned());
      const startedAt = performance.now();
      await eventually(() => expect(reader.jobs).toHaveLength(count), { intervalMs: 2 });
      waits.push(performance.now() - startedAt);
    }
    expect(waits.toSorted((a, b) => a - b)[4]).toBeLessThan(200);
  });

  it('delivers committed events of a process without a relay', async () => {
    await startDelivering();
    const reader = read();
    const [failed, done] = [await apps.createOwned(), await apps.createOwned()];
    const { applicationId } = failed;
    const failure = { table: 'application_event', operation: 'insert', applicationId, when: 'commit' } as const;
    await whileFailing(apps.db, failure, () => refusalOf(apps.client.deleteApplication(failed)));
    await apps.client.deleteApplication(done);
    await eventually(() => expect(reader.applications()).toEqual([done.applicationId]));
  });

  it('delivers in order of sequence if the clocks of processes differ', async () => {
    await insertVersionChanges(apps.db, 90);
    const published = await listen();
    await startDelivering();
    await eventually(() => expect(published).toHaveLength(90));
    expect(published.map(({ sequence }) => Number(sequence))).toEqual(range(1, 90));
  });

  it('costs a change one more row: delivery comes after its transaction', async () => {
    const ref = await apps.createOwned();
    const sent = await statementsOf(() => apps.set(ref, 'status', 'paused'));
    expect(sent.map(({ text }) => text.trim().split(' ', 1)[0])).toEqual([
      'begin',
      'select',
      'update',
      'insert',
      'insert',
      'commit',
    ]);
  });

  it('shares the log with other relays: each event is delivered, hardly any twice', async () => {
    const reader = read();
    const expected = await insertDeletions(apps.db, 400);
    await Promise.all([startDelivering(), startDelivering(), startDelivering()]);
    await allDelivered();
    await eventually(() => expect(reader.applications()).toEqual(expected), { timeoutMs: 10_000 });
    expect(reader.jobs.length).toBeLessThan(700);
  });

  it.each([
    ['before it has published', 'publish', 'before', 0],
    ['after it has published', 'publish', 'after', 0],
    ['before it has added the jobs to files', 'files', 'before', 0],
    ['after it has added the jobs to files', 'files', 'after', 100],
  ])('that fails %s loses nothing: the next delivery does the rest, and adds no job twice', async (_, step, when, added) => {
    const expected = await insertDeletions(apps.db, 130);
    const logger = createLogger('relay', 'silent');
    const database = createDatabase({ url: apps.url, schema: 'apps', logger });
    const queues = createQueueProducer({ url: redis.url, name: 'failing', queues: QUEUES, logger });
    const publisher = createEventPublisher(redis.url, logger, 'failing');
    const failed = Promise.withResolvers<void>();
    const failAt = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
      if (name !== step) return run();
      if (when === 'after') await eventually(run);
      failed.resolve();
      throw new Error('the process was killed');
    };
    const relay = createRelay(
      {
        db: database.db,
        publish: (events) => failAt('publish', () => publisher.publish(events)),
        producer: { add: (queue, jobs) => failAt(queue, () => queues.add(queue, jobs)) },
        clock: () => new Date(),
      },
      logger,
    );
    queues.connect();
    publisher.connect();
    relay.start();
    await failed.promise;
    await relay.stop();
    await queues.close();
    publisher.close();
    await database.close();
    expect(await redis.ask((client) => client.llen('latchkey:queue:files:wait'))).toBe(added);
    expect(await undelivered(apps.db)).toHaveLength(130);
    const published = await listen();
    await startDelivering();
    await allDelivered();
    const reader = read();
    await eventually(() => expect(reader.applications()).toEqual(expected));
    expect(reader.jobs).toHaveLength(130);
    await eventually(() => expect(published).toHaveLength(130));
  });
});

describe.each([
  { what: 'gone', breakIt: () => redis.stop(), repair: () => redis.start() },
  { what: 'frozen', breakIt: async () => redis.freeze(), repair: async () => redis.thaw() },
])('with Redis $what', ({ breakIt, repair }) => {
  it('deletions succeed quickly, and are delivered within 2 s of its return', async () => {
    const { client } = await startDelivering();
    await client.deleteApplication(await apps.createOwned());
    await allDelivered();
    await breakIt();
    const refs = await Promise.all(range(1, 20).map(() => apps.createOwned()));
    const startedAt = performance.now();
    for (const ref of refs) await client.deleteApplication(ref);
    expect((performance.now() - startedAt) / refs.length).toBeLessThan(100);
    expect(await undelivered(apps.db)).toHaveLength(20);
    await repair();
    const repairedAt = performance.now();
    await allDelivered();
    expect(performance.now() - repairedAt).toBeLessThan(2_000);
  });

  it('the service starts, is ready, responds, and stops', async () => {
    await breakIt();
    const startedAt = performance.now();
    const { client, service } = await startDelivering();
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    await service.checkReady();
    await client.deleteApplication(await apps.createOwned());
    const stoppedAt = performance.now();
    await service.stop();
    expect(performance.now() - stoppedAt).toBeLessThan(3_000);
    await repair();
    expect(await undelivered(apps.db)).toHaveLength(1);
  });
});
