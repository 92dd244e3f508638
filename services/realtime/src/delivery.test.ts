import { randomUUID } from 'node:crypto';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { beforeEach, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from './testing/fake-apps.ts';
import { createPublisher, NEVER, startNode } from './testing/test-node.ts';

let apps: FakeApps;
let redisUrl: string;
let application: FakeApplication;
beforeEach(async () => {
  apps = new FakeApps();
  redisUrl = (await testRedis()).url;
  application = apps.create();
});

it('sends the snapshot first, then events in order, to every node, and closes with 4102 after the deletion', async () => {
  const nodes = await Promise.all([startNode(apps, redisUrl, NEVER), startNode(apps, redisUrl, NEVER)]);
  const { broadcast } = createPublisher(redisUrl);
  const clients = await Promise.all(nodes.map((node) => node.open(application)));
  const paused = apps.log(application, { case: 'paused', value: { status: 'paused' } });
  const resumed = apps.log(application, { case: 'resumed', value: { status: 'online' } });
  const changed = apps.logVersion(application);
  const deleted = apps.log(application, { case: 'deleted', value: {} });
  // Out of order: the deletion comes last all the same.
  await broadcast(application, paused, deleted, changed, resumed);
  const source = `/applications/${application.id}`;
  const common = { specversion: '1.0', source, datacontenttype: 'application/json', epoch: 'e1' };
  const data = {
    applicationId: application.id,
    name: 'Engine',
    status: 'online',
    version: '1.0',
    lastSequence: '0',
    resumed: false,
  };
  const event = (type: string, { id, createdAt, sequence }: typeof paused, payload: object) => ({
    ...common,
    id,
    type: `latchkey.application.${type}`,
    time: createdAt.toISOString(),
    sequence: String(sequence),
    data: payload,
  });
  for (const client of clients) {
    expect(await client.closed).toEqual({ code: 4102, reason: 'application deleted' });
    expect(client.frames).toEqual([
      { ...common, id: expect.any(String), type: 'latchkey.connection.ready', time: expect.any(String), data },
      event('paused', paused, { status: 'paused' }),
      event('resumed', resumed, { status: 'online' }),
      event('version_changed', changed, { version: '2.3', previousVersion: '1.0' }),
      event('deleted', deleted, {}),
    ]);
  }
  for (const node of nodes) {
    expect(await node.connect(application.socketKey).rejected).toMatchObject({ status: 401, body: { code: 'api_key_invalid' } });
  }
});

/** Publishes a rotation, as the apps service does: without a sequence. */
async function publishRotation(redisUrl: string, application: FakeApplication): Promise<void> {
  const facts = { id: randomUUID(), applicationId: application.id, epoch: 'e1', createdAt: new Date().toISOString() };
  const rotation = { ...facts, type: 'runtime_key_rotated', sequence: null, data: { type: 'socketKey' } };
  await createPublisher(redisUrl).publish(application, JSON.stringify(rotation));
}

it('closes the sockets of a rotated key with 4103 on every node, and those of no other application', async () => {
  const nodes = await Promise.all([startNode(apps, redisUrl, NEVER), startNode(apps, redisUrl, NEVER)]);
  const old = await Promise.all(nodes.map((node) => node.open(application)));
  const bystander = await nodes[0].open(apps.create());
  apps.rotate(application);
  await publishRotation(redisUrl, application);
  for (const client of old) expect(await client.closed).toEqual({ code: 4103, reason: 'socket key rotated' });
  expect(bystander.isOpen).toBe(true);
});

it('tells the sockets of an old key once when an overlap ends, and closes them with 4103 then', async () => {
  const node = await startNode(apps, redisUrl, { reconcileMs: 50 });
  const old = await node.open(application);
  const expiresAt = new Date(Date.now() + 1_500);
  const { socketKey: oldKey } = application;
  apps.rotate(application, expiresAt);
  await publishRotation(redisUrl, application);
  const expiring = { type: 'latchkey.connection.key_expiring', data: { expiresAt: expiresAt.toISOString() } };
  await eventually(() => expect(old.frames.slice(1)).toMatchObject([expiring]));
  // Also one that opens during the overlap. It makes a reconciliation, which tells the first no more.
  const late = node.connect(oldKey);
  await eventually(() => expect(late.frames).toMatchObject([{ type: 'latchkey.connection.ready' }, expiring]));
  const current = await node.open(application);
  expect(await Promise.all([old.closed, late.closed])).toMatchObject([{ code: 4103 }, { code: 4103 }]);
  expect(Date.now()).toBeGreaterThanOrEqual(expiresAt.getTime());
  expect(old.frames).toHaveLength(2);
  expect(current.isOpen).toBe(true);
  expect(current.frames).toHaveLength(1);
});
