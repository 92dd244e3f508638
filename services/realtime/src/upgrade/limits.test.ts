import { once } from 'node:events';
import { Code, ConnectError } from '@connectrpc/connect';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { closeFrame, RawSocket, upgradeRequest } from '../testing/raw-socket.ts';
import { startNode, type TestNode } from '../testing/test-node.ts';

const PLACES = 3;
const UNKNOWN_KEY = `lk_sock_${'x'.repeat(32)}`;

let apps: FakeApps;
let application: FakeApplication;
let redisUrl: string;
beforeEach(async () => {
  apps = new FakeApps();
  application = apps.create();
  redisUrl = (await testRedis()).url;
});

type Headers = Parameters<typeof upgradeRequest>[1];
const open = (node: TestNode, key: string | undefined = application.socketKey, headers: Headers = {}) =>
  RawSocket.open(node.port, upgradeRequest(key, headers));

/** Opens as many sockets as there are places, and sees that there is none more. */
async function fill(node: TestNode): Promise<RawSocket[]> {
  const sockets: RawSocket[] = [];
  for (let i = 0; i < PLACES; i += 1) {
    const socket = await open(node);
    await socket.ready();
    sockets.push(socket);
  }
  expect((await (await open(node)).answer()).status).toBe(503);
  return sockets;
}

describe('the limit of sockets', () => {
  it.each([
    ['of a node', { SOCKETS_MAX: '2' }, 503, undefined],
    ['of an application', { SOCKETS_PER_APPLICATION: '2' }, 429, 'sockets-per-application'],
    ['of an address', { SOCKETS_PER_IP: '2' }, 429, 'sockets-per-address'],
  ])('%s is kept, also by those that come at once', async (_, env, status, policy) => {
    const node = await startNode(apps, redisUrl, { env });
    const answers = await Promise.all(Array.from({ length: 5 }, async () => (await open(node)).answer()));
    const refused = answers.filter((answer) => answer.status !== 101);
    expect(refused).toHaveLength(3);
    for (const answer of refused) {
      expect(answer).toMatchObject({ status, headers: { 'retry-after': '10' } });
      if (policy) {
        expect(answer.headers).toMatchObject({ 'ratelimit-policy': `"${policy}";q=2;w=0`, ratelimit: `"${policy}";r=0;t=10` });
        expect(answer.body).toMatchObject({ code: 'rate_limit_reached' });
      }
    }
  });

  it('of one application leaves the places of others alone', async () => {
    const node = await startNode(apps, redisUrl, { env: { SOCKETS_PER_APPLICATION: '1' } });
    expect((await (await open(node)).answer()).status).toBe(101);
    expect((await (await open(node)).answer()).status).toBe(429);
    expect((await (await open(node, apps.create().socketKey)).answer()).status).toBe(101);
  });

  it('of an address counts whom a trusted proxy speaks for, and believes nobody else', async () => {
    const trusting = await startNode(apps, redisUrl, { env: { SOCKETS_PER_IP: '1', TRUSTED_PROXIES: '127.0.0.1' } });
    const doubting = await startNode(apps, redisUrl, { env: { SOCKETS_PER_IP: '1' } });
    const statuses = async (node: TestNode, addresses: string[]) => {
      const list: number[] = [];
      for (const address of addresses) {
        const socket = await open(node, application.socketKey, { 'X-Forwarded-For': address });
        list.push((await socket.answer()).status);
      }
      return list;
    };
    expect(await statuses(trusting, ['192.0.2.1', '192.0.2.2', '192.0.2.1'])).toEqual([101, 101, 429]);
    // What a client adds in front of its own address is not believed, nor is one /64 more than one client.
    expect(await statuses(trusting, ['6.6.6.6, 192.0.2.2', '2001:db8::1', '2001:db8::2'])).toEqual([429, 101, 429]);
    expect(await statuses(doubting, ['192.0.2.1', '192.0.2.2'])).toEqual([101, 429]);
  });

  it('is not upset by what a trusted proxy forwards', async () => {
    const node = await startNode(apps, redisUrl, { env: { TRUSTED_PROXIES: '127.0.0.1,::1' } });
    const odd = ['', ',', ', ,', 'x', '192.0.2.1:80', '[2001:db8::1]', ':::::', 'fe80::1%eth0', '1'.repeat(8_000), '"'];
    for (const address of odd) {
      const socket = await open(node, application.socketKey, { 'X-Forwarded-For': address });
      expect((await socket.answer()).status).toBe(101);
    }
  });
});

describe('a place', () => {
  it.each<[string, (socket: RawSocket) => void]>([
    ['closes', (socket) => socket.send(closeFrame(1000))],
    ['half-closes', ({ client }) => void client.socket.end()],
    ['goes', ({ client }) => void client.socket.destroy()],
    ['is reset', ({ client }) => void client.socket.resetAndDestroy()],
    ['breaks the protocol', (socket) => socket.send(Buffer.from([0xff, 0xff]))],
  ])('is given back when the client %s', async (_, end) => {
    const node = await startNode(apps, redisUrl, { env: { SOCKETS_MAX: String(PLACES) } });
    for (const socket of await fill(node)) end(socket);
    await eventually(() => fill(node));
  });

  it.each<[string, (socket: RawSocket) => void]>([
    ['half-closes', ({ client }) => void client.socket.end()],
    ['goes', ({ client }) => void client.socket.destroy()],
    ['is reset', ({ client }) => void client.socket.resetAndDestroy()],
  ])('is given back when the client %s while its key is looked up', async (_, end) => {
    const node = await startNode(apps, redisUrl, { env: { SOCKETS_MAX: String(PLACES) } });
    const { promise: gate, resolve: letThrough } = Promise.withResolvers<void>();
    apps.waitFor(gate);
    const sockets = [await open(node), await open(node), await open(node)];
    await eventually(async () => expect((await (await open(node)).answer()).status).toBe(503));
    for (const socket of sockets) end(socket);
    apps.waitFor(undefined);
    letThrough();
    await eventually(() => fill(node));
  });

  it('is given back at once when the upgrade is refused, before the client has gone', async () => {
    const node = await startNode(apps, redisUrl, {
      env: { SOCKETS_MAX: '1', SOCKETS_PER_APPLICATION: '1', SOCKETS_PER_IP: '1' },
    });
    for (let i = 0; i < 3; i += 1) {
      expect((await (await open(node, UNKNOWN_KEY)).answer()).status).toBe(401);
      expect((await (await open(node, undefined, { 'Sec-WebSocket-Key': 'x' })).answer()).status).toBe(400);
      apps.failWith(new ConnectError('oops', Code.Internal));
      expect((await (await open(node)).answer()).status).toBe(503);
      apps.failWith(undefined);
    }
    expect((await (await open(node)).answer()).status).toBe(101);
  });
});

describe('refused upgrades of an address', () => {
  const env = { rejectionsPerMinute: 2 };

  it('are bounded: further ones are not looked up, whatever their key', async () => {
    const node = await startNode(apps, redisUrl, env);
    expect((await (await open(node, UNKNOWN_KEY)).answer()).status).toBe(401);
    expect((await (await open(node, undefined, { 'Sec-WebSocket-Key': 'x' })).answer()).status).toBe(400);
    const lookUps = apps.calls.lookUp;
    const answer = await (await open(node)).answer();
    expect(answer).toMatchObject({ status: 429, body: { code: 'rate_limit_reached' } });
    expect(answer.headers['ratelimit-policy']).toBe('"refused-upgrades";q=2;w=60');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(apps.calls.lookUp).toBe(lookUps);
  });

  it('do not hold against a client what was no fault of its', async () => {
    const node = await startNode(apps, redisUrl, env);
    apps.failWith(new ConnectError('oops', Code.Internal));
    for (let i = 0; i < 4; i += 1) expect((await (await open(node)).answer()).status).toBe(503);
    apps.failWith(undefined);
    expect((await (await open(node)).answer()).status).toBe(101);
  });
});

describe('connections', () => {
  it('that are more than a node has room for are closed, and there is room again when others go', async () => {
    const node = await startNode(apps, redisUrl, { env: { SOCKETS_MAX: '1' } });
    const idle = await Promise.all(Array.from({ length: 1_001 }, () => RawSocket.open(node.port, '')));
    const further = await RawSocket.open(node.port, '');
    await once(further.client.socket, 'end');
    expect(further.client.received()).toBe('');
    for (const { client } of idle) client.socket.destroy();
    await eventually(async () => {
      const { client } = await open(node);
      await Promise.race([once(client.socket, 'data'), client.ended]);
      expect(client.received()).toContain('101');
    });
  });
});
