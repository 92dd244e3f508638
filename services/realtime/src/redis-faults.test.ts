import { eventually } from '@latchkey/testkit/eventually';
import { startOwnRedis } from '@latchkey/testkit/redis/own-redis';
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type FakeApplication, FakeApps } from './testing/fake-apps.ts';
import type { TestClient } from './testing/test-client.ts';
import { createPublisher, NEVER, range, startNode } from './testing/test-node.ts';

const PATIENCE = { timeoutMs: 15_000 };

const redis = await startOwnRedis();
afterAll(() => redis.remove());
let apps: FakeApps;
let application: FakeApplication;
beforeEach(async () => {
  apps = new FakeApps();
  application = apps.create();
  await redis.empty();
});

/** Resolves with the milliseconds until the client has received the whole log, in order. */
async function received(client: TestClient, options = {}): Promise<number> {
  const startedAt = performance.now();
  const all = range(1, application.lastSequence);
  await eventually(() => expect(client.sequences()).toEqual(all), { intervalMs: 2, ...options });
  return performance.now() - startedAt;
}

describe.each([
  ['gone', () => redis.stop(), () => redis.start()],
  ['frozen', async () => redis.freeze(), async () => redis.thaw()],
])('with Redis %s', (_what, breakIt, repair) => {
  it('clients connect and receive events within 2 s, and quickly once it is back', async () => {
    const [node, { broadcast }] = [await startNode(apps, redis.url), createPublisher(redis.url)];
    const client = await node.open(application);
    await broadcast(application, apps.logVersion(application));
    await received(client);
    await breakIt();
    let isBroken = true;
    onTestFinished(async () => void (isBroken && (await repair())));
    apps.logVersions(application, 2);
    expect(await received(client)).toBeLessThan(2_000);
    await node.service.checkReady();
    expect(await received(node.connect(application.socketKey, { lastEventId: '0' }))).toBeLessThan(2_000);
    await repair();
    isBroken = false;
    await eventually(async () => {
      await broadcast(application, apps.logVersion(application));
      expect(await received(client)).toBeLessThan(500);
    }, PATIENCE);
  });
});

describe('after Redis was gone', () => {
  it('nodes subscribe again, and reconcile what they missed', async () => {
    const [node, { broadcast }] = [await startNode(apps, redis.url, NEVER), createPublisher(redis.url)];
    const client = await node.open(application);
    await broadcast(application, apps.logVersion(application));
    await received(client);
    await redis.stop();
    apps.logVersions(application, 5);
    await redis.start();
    await received(client, PATIENCE);
    await broadcast(application, apps.logVersion(application));
    await received(client, PATIENCE);
  });

  it('a node starts and stops without it', async () => {
    await redis.stop();
    onTestFinished(() => redis.start());
    const startedAt = performance.now();
    const node = await startNode(apps, redis.url);
    const client = await node.open(application);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await node.service.stop();
    expect(await client.closed).toMatchObject({ code: 1001 });
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});
