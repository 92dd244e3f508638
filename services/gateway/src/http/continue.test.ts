import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ACCOUNT, startTestGateway, type TestGateway } from '../testing/test-gateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  const session = { token: 'token', csrfToken: 'csrf', expiresAt: { seconds: 4_000_000_000n, nanos: 0 } };
  const accounts = { signIn: async () => ({ account: ACCOUNT, session }) };
  gateway = await startTestGateway({ redisUrl: (await testRedis()).url, accounts });
});
afterAll(() => gateway.service.stop());

const BODY = '{"email":"ada@example.com","password":"a long passphrase"}';

async function expecting(head: string) {
  const client = await openRawClient(gateway.port);
  client.socket.write(`${head}\r\nHost: x\r\nExpect: 100-Continue\r\n\r\n`);
  await eventually(() => client.received() !== '');
  return client;
}

describe('a client that expects 100 Continue', () => {
  it('hears it when the body is wanted, once, and then the answer', async () => {
    const type = 'Content-Type: application/json';
    const client = await expecting(`POST /api/v1/auth/sign-in HTTP/1.1\r\n${type}\r\nContent-Length: ${BODY.length}`);
    expect(client.received()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    client.socket.write(BODY);
    await eventually(() => client.received().includes('"csrf"'));
    expect(client.received().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200']);
    client.socket.destroy();
  });

  it.each([
    ['401', 'POST /api/v1/panel/create-application HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 20'],
    ['404', 'POST /nowhere HTTP/1.1\r\nContent-Type: application/octet-stream\r\nContent-Length: 20'],
    ['413', 'POST /api/v1/auth/sign-in HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 70000'],
    ['415', 'POST /api/v1/auth/sign-in HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 20'],
    ['400', 'POST /api/v1/auth/sign-in HTTP/1.1\r\nHost: y\r\nContent-Type: application/json\r\nContent-Length: 20'],
  ])('hears %s and nothing before it where the body is not wanted', async (status, head) => {
    const client = await expecting(head);
    client.socket.end();
    expect(await client.ended).toBe('end');
    expect(client.received().match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
    expect(client.received()).toMatch(/connection: close/i);
  });
});
