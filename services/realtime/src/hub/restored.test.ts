import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { expect, it } from 'vitest';
import { createPublisher } from '../testing/channel-publisher.ts';
import { FakeApps } from '../testing/fake-apps.ts';
import { startNode } from '../testing/test-node.ts';

it('clients of an application that went back in time are sent away, and told where they stand when they come back', async () => {
  const apps = new FakeApps();
  const redisUrl = (await testRedis()).url;
  const application = apps.create();
  const node = await startNode(apps, redisUrl);
  const client = node.connect(application.socketKey);
  await client.ready();
  const publisher = createPublisher(redisUrl);
  for (let i = 0; i < 5; i += 1) await publisher.tell(application, apps.logVersion(application));
  await eventually(() => expect(client.sequences()).toEqual([1, 2, 3, 4, 5]));
  // As if a backup had been restored that was made after the second.
  application.events.splice(2);
  application.lastSequence = 2;
  expect((await client.closed).code).toBe(1001);
  const back = node.connect(application.socketKey, { lastEventId: '5' });
  expect((await back.ready()).data).toMatchObject({ lastSequence: '2', resumed: false });
  await publisher.tell(application, apps.logVersion(application));
  await eventually(() => expect(back.sequences()).toEqual([3]));
  expect(node.lines.filter(({ msg }) => msg === 'the event log has lost events that clients received')).toHaveLength(1);
});

it('a node keeps nothing of applications whose clients have gone, however they came and went', async () => {
  const apps = new FakeApps();
  const node = await startNode(apps, (await testRedis()).url);
  const applications = Array.from({ length: 20 }, () => apps.create());
  for (let round = 0; round < 3; round += 1) {
    const clients = applications.map(({ socketKey }) => node.connect(socketKey));
    for (const { ws } of clients) ws.once('open', () => ws.terminate());
    await Promise.all(clients.map(({ closed }) => closed));
  }
  await eventually(() => expect(node.lines.filter(({ msg }) => msg === 'socket closed')).toHaveLength(60));
  const before = apps.calls.states;
  const one = apps.create();
  const client = node.connect(one.socketKey);
  await client.ready();
  apps.logVersion(one);
  await eventually(() => expect(client.sequences()).toEqual([1]));
  expect(apps.calls.states).toBeGreaterThan(before);
  client.ws.terminate();
  await eventually(() => expect(node.lines.filter(({ msg }) => msg === 'socket closed')).toHaveLength(61));
  // Looks go on every second, and ask for nothing.
  const asked = apps.calls.states;
  await expect(eventually(() => apps.calls.states > asked + 1, { timeoutMs: 2_500 })).rejects.toThrow();
});
