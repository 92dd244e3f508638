import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createLogger } from '@latchkey/kit/logger';
import { eventually } from '@latchkey/testkit/eventually';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { readQueue } from '../testing/queue-reader.ts';
import { insertDeletions, insertVersionChanges, undelivered } from '../testing/rows.ts';
import { startTestApps, type TestApps } from '../testing/test-apps.ts';

const RELAY = fileURLToPath(new URL('../testing/relay-process.ts', import.meta.url));

let apps: TestApps;
let redis: OwnRedis;
beforeAll(async () => {
  [apps, redis] = await Promise.all([startTestApps(), startOwnRedis()]);
});
afterAll(() => Promise.all([apps.stop(), redis.remove()]));
beforeEach(async () => {
  await apps.db.query('delete from application_event');
  await redis.empty();
});

async function startDelivering() {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line).msg);
  const instance = apps.connect({ env: { REDIS_URL: redis.url }, logger: createLogger('apps', 'info', { write }) });
  onTestFinished(() => instance.service.stop());
  await instance.service.start();
  return { ...instance, lines };
}

function read(queue = 'files') {
  const reader = readQueue(redis.url, queue);
  onTestFinished(() => reader.stop());
  return reader;
}

const faults = [
  { what: 'gone', breakIt: () => redis.stop(), mend: () => redis.start() },
  { what: 'frozen', breakIt: async () => redis.freeze(), mend: async () => redis.thaw() },
];

describe.each(faults)('with Redis $what', ({ breakIt, mend }) => {
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

  it('deletions go on at once, and are delivered within 2 s of its return, none lost', async () => {
    const { client, lines } = await startDelivering();
    const first = await apps.createOwned();
    await client.deleteApplication(first);
    await eventually(async () => expect(await undelivered(apps.db)).toEqual([]));
    // The first may have come before the connection was there, which is told of as well.
    lines.splice(0);
    await broken();
    const refs = await Promise.all(Array.from({ length: 20 }, () => apps.createOwned()));
    const startedAt = performance.now();
    for (const ref of refs) await client.deleteApplication(ref);
    expect((performance.now() - startedAt) / refs.length).toBeLessThan(100);
    await eventually(() => expect(lines).toContain('events wait to be delivered'));
    expect(await undelivered(apps.db)).toHaveLength(20);
    await mended();
    const mendedAt = performance.now();
    await eventually(async () => expect(await undelivered(apps.db)).toEqual([]));
    expect(performance.now() - mendedAt).toBeLessThan(2_000);
    const reader = read();
    const expected = [first, ...refs].map(({ applicationId }) => applicationId).sort();
    await eventually(() => expect(reader.applications()).toEqual(expected));
    for (const line of ['redis is unreachable', 'events wait to be delivered', 'events are delivered again']) {
      expect(lines.filter((msg) => msg === line).length).toBeLessThanOrEqual(1);
    }
  });

  it('the service starts, is ready, answers, and stops', async () => {
    await broken();
    const startedAt = performance.now();
    const { client, service } = await startDelivering();
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    await service.checkReady();
    const ref = await apps.createOwned();
    await client.deleteApplication(ref);
    const stoppedAt = performance.now();
    await service.stop();
    expect(performance.now() - stoppedAt).toBeLessThan(3_000);
    await mended();
    expect(await undelivered(apps.db)).toHaveLength(1);
    await startDelivering();
    const reader = read();
    await eventually(() => expect(reader.applications()).toEqual([ref.applicationId]));
  });
});

describe('a relay that is killed', () => {
  const BEFORE = 'after the commit and before it has added the jobs';
  const AFTER = 'after it has added the jobs and before it has marked the events';

  it.each([
    [BEFORE, 'before', 'files', 0],
    [AFTER, 'after', 'files', 100],
    [BEFORE, 'before', 'identity', 0],
    [AFTER, 'after', 'identity', 100],
    [BEFORE, 'before', 'realtime', 0],
    [AFTER, 'after', 'realtime', 100],
  ])('%s loses nothing: another delivers the events (%s, %s)', async (_, when, queue, added) => {
    const expected = await insertDeletions(apps.db, 130);
    await killWhileDelivering(queue, when);
    const waiting = () => redis.ask((client) => client.llen(`latchkey:queue:${queue}:wait`));
    expect(await waiting()).toBe(added);
    // PostgreSQL rolls back once it has noticed that the connection is gone.
    await eventually(async () => expect(await undelivered(apps.db)).toHaveLength(130));
    await startDelivering();
    await eventually(async () => expect(await undelivered(apps.db)).toEqual([]));
    expect(await waiting()).toBe(130);
    const reader = read(queue);
    await eventually(() => expect(reader.applications()).toEqual(expected));
    expect(reader.jobs).toHaveLength(130);
  });

  it('in between loses no event of a live application, also where its jobs were done before they came again', async () => {
    const applicationId = await insertVersionChanges(apps.db, 130);
    const reader = read('realtime');
    await killWhileDelivering('realtime', 'after');
    const left = () => redis.ask((client) => client.keys('latchkey:queue:realtime:*-*-*-*-*'));
    await eventually(async () => expect([reader.jobs.length, await left()]).toEqual([100, []]));
    await startDelivering();
    await eventually(async () => expect(await undelivered(apps.db)).toEqual([]));
    // All of the batch came again, the others once.
    await eventually(() => expect(reader.jobs).toHaveLength(230));
    expect(reader.applications()).toEqual([applicationId]);
    const sequences = reader.jobs.map(({ data }) => Number((data as { sequence: string }).sequence));
    expect([...new Set(sequences)].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 130 }, (_, i) => i + 1));
  });
});

async function killWhileDelivering(queue: string, when: string) {
  const child = spawn(process.execPath, [RELAY, apps.url, redis.url, queue, when], { stdio: 'inherit' });
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
}
