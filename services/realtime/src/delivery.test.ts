import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeApps } from './testing/fake-apps.ts';
import { startNode, startRelay } from './testing/test-node.ts';

let apps: FakeApps;
let redisUrl: string;
beforeEach(async () => {
  apps = new FakeApps();
  redisUrl = (await testRedis()).url;
});

describe('a client', () => {
  it('is told first how the application stands, then what happens, in order, and of the end', async () => {
    const application = apps.create();
    const [node, relay] = [await startNode(apps, redisUrl), startRelay(redisUrl)];
    const client = node.connect(application.socketKey);
    const ready = await client.ready();
    expect(ready).toMatchObject({
      specversion: '1.0',
      type: 'latchkey.connection.ready',
      source: `/applications/${application.id}`,
      datacontenttype: 'application/json',
      data: {
        applicationId: application.id,
        name: 'Engine',
        status: 'online',
        version: '1.0',
        lastSequence: '0',
        resumed: false,
      },
    });
    const paused = apps.log(application, { case: 'paused', value: { status: 'paused' } });
    await relay.relay(application, paused);
    await relay.relay(application, apps.log(application, { case: 'resumed', value: { status: 'online' } }));
    await relay.relay(application, apps.logVersion(application));
    await relay.relay(application, apps.log(application, { case: 'deleted', value: {} }));
    expect(await client.closed).toEqual({ code: 4102, reason: 'application deleted' });
    expect(client.frames.slice(1)).toEqual([
      {
        specversion: '1.0',
        id: paused.id,
        source: `/applications/${application.id}`,
        type: 'latchkey.application.paused',
        time: paused.createdAt.toISOString(),
        datacontenttype: 'application/json',
        sequence: '1',
        data: { status: 'paused' },
      },
      expect.objectContaining({ type: 'latchkey.application.resumed', sequence: '2', data: { status: 'online' } }),
      expect.objectContaining({
        type: 'latchkey.application.version_changed',
        sequence: '3',
        data: { version: '2.3', previousVersion: '1.0' },
      }),
      expect.objectContaining({ type: 'latchkey.application.deleted', sequence: '4', data: {} }),
    ]);
    await eventually(() => expect(node.lines).toContainEqual(expect.objectContaining({ msg: 'socket closed', code: 4102 })));
  });
});
