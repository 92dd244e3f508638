import { Code, ConnectError } from '@connectrpc/connect';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { closeFrame, type Headers, openRawSocket, type RawSocket, upgradeRequest } from '../testing/raw-socket.ts';
import { startNode, type TestNode } from '../testing/test-node.ts';

const UNKNOWN = `lk_sock_${'x'.repeat(32)}`;

let apps: FakeApps;
let application: FakeApplication;
let redisUrl: string;
beforeEach(async () => {
  apps = new FakeApps();
  application = apps.create();
  redisUrl = (await testRedis()).url;
});

const open = (node: TestNode, key = application.socketKey, headers: Headers = {}) =>
  openRawSocket(node.port, upgradeRequest(key, headers));
const statusOf = async (...args: Parameters<typeof open>) => (await (await open(...args)).response()).status;

describe('the connection quota', () => {
  it.each([
    ['a node', { env: { SOCKETS_MAX: '2' } }, 503, undefined],
    ['an application', { env: { SOCKETS_PER_APPLICATION: '2' } }, 429, 'sockets-per-application'],
    ['an address', { env: { SOCKETS_PER_IP: '2' } }, 429, 'sockets-per-address'],
  ])('of %s holds for concurrent upgrades', async (_of, options, status, policy) => {
    const node = await startNode(apps, redisUrl, options);
    const responses = await Promise.all(Array.from({ length: 5 }, async () => (await open(node)).response()));
    const rejected = responses.filter((response) => response.status !== 101);
    expect(rejected).toHaveLength(3);
    const limit = policy && { 'ratelimit-policy': `"${policy}";q=2;w=0`, ratelimit: `"${policy}";r=0;t=10` };
    for (const response of rejected) expect(response).toMatchObject({ status, headers: { 'retry-after': '10', ...limit } });
  });

  it('of one application leaves others alone', async () => {
    const node = await startNode(apps, redisUrl, { env: { SOCKETS_PER_APPLICATION: '1' } });
    expect([await statusOf(node), await statusOf(node), await statusOf(node, apps.create().socketKey)]).toEqual([101, 429, 101]);
  });

  it('counts addresses that trusted proxies forward, an IPv6 /64 as one, and believes no other client', async () => {
    const statuses = async (node: TestNode, addresses: string[]) => {
      const list: number[] = [];
      for (const address of addresses) list.push(await statusOf(node, application.socketKey, { 'X-Forwarded-For': address }));
      return list;
    };
    const trusting = await startNode(apps, redisUrl, { env: { SOCKETS_PER_IP: '1', TRUSTED_PROXIES: '127.0.0.1' } });
    const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.1', '6.6.6.6, 192.0.2.2', '2001:db8::1', '2001:db8::2'];
    expect(await statuses(trusting, addresses)).toEqual([101, 101, 429, 429, 101, 429]);
    const doubting = await startNode(apps, redisUrl, { env: { SOCKETS_PER_IP: '1' } });
    expect(await statuses(doubting, ['192.0.2.1', '192.0.2.2'])).toEqual([101, 429]);
  });

  const endings: Array<[string, (socket: RawSocket) => void]> = [
    ['closes', (socket) => socket.send(closeFrame(1000))],
    ['half-closes', ({ client }) => void client.socket.end()],
    ['is reset', ({ client }) => void client.socket.resetAndDestroy()],
  ];

  it.each(endings)('is released when the client %s', async (_what, end) => {
    const node = await startNode(apps, redisUrl, { env: { SOCKETS_MAX: '1' } });
    const socket = await open(node);
    await socket.ready();
    expect(await statusOf(node)).toBe(503);
    end(socket);
    await eventually(async () => expect(await statusOf(node)).toBe(101));
  });

  it.each(endings.slice(1))('is released when the client %s during the look-up of its key', async (_what, end) => {
    const node = await startNode(apps, redisUrl, { env: { SOCKETS_MAX: '1' } });
    const release = apps.hold();
    const socket = await open(node);
    await eventually(() => expect(apps.calls.lookUp).toBe(1));
    expect(await statusOf(node)).toBe(503);
    end(socket);
    release();
    await eventually(async () => expect(await statusOf(node)).toBe(101));
  });

  it('is released when an upgrade is rejected', async () => {
    const node = await startNode(apps, redisUrl, {
      env: { SOCKETS_MAX: '1', SOCKETS_PER_IP: '1', SOCKETS_PER_APPLICATION: '1' },
    });
    expect(await statusOf(node, UNKNOWN)).toBe(401);
    expect(await statusOf(node, application.socketKey, { 'Sec-WebSocket-Key': 'x' })).toBe(400);
    apps.failWith(new ConnectError('oops', Code.Internal));
    expect(await statusOf(node)).toBe(503);
    apps.failWith(undefined);
    expect(await statusOf(node)).toBe(101);
  });
});

it('rejects upgrades of an address after too many rejections without a lookup, and counts no failure of the service', async () => {
  const node = await startNode(apps, redisUrl, { rejectionsPerMinute: 2 });
  apps.failWith(new ConnectError('oops', Code.Internal));
  for (let i = 0; i < 3; i += 1) expect(await statusOf(node)).toBe(503);
  apps.failWith(undefined);
  expect([await statusOf(node, UNKNOWN), await statusOf(node, UNKNOWN)]).toEqual([401, 401]);
  const { lookUp } = apps.calls;
  const response = await (await open(node)).response();
  const headers = { 'ratelimit-policy': '"refused-upgrades";q=2;w=60' };
  expect(response).toMatchObject({ status: 429, headers, body: { code: 'rate_limit_reached' } });
  expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
  expect(apps.calls.lookUp).toBe(lookUp);
});
