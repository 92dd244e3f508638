import { openRawClient } from '@latchkey/testkit/raw-client';
import { testRedis } from '@latchkey/testkit/redis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startTestGateway } from '../testing/test-gateway.ts';

async function policyOf(publicUrl: string, bytes: string): Promise<string | undefined> {
  const gateway = await startTestGateway({ redisUrl: (await testRedis()).url, env: { PUBLIC_URL: publicUrl } });
  onTestFinished(() => gateway.service.stop());
  const client = await openRawClient(gateway.port);
  client.socket.once('end', () => client.socket.end()).write(bytes);
  await client.ended;
  return /^strict-transport-security: (.*)\r$/im.exec(client.received())?.[1];
}

const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

describe('Strict-Transport-Security', () => {
  it.each([
    ['a success', HEALTH],
    ['an unknown route', HEALTH.replace('healthz', 'nowhere')],
    ['a download', HEALTH.replace('healthz', 'downloads/x')],
    ['the documentation', HEALTH.replace('healthz', 'docs/')],
    ['a path that cannot be decoded', HEALTH.replace('healthz', '%zz')],
    ['a missing host', HEALTH.replace('Host: x\r\n', '')],
    ['no HTTP', 'garbage\r\n\r\n'],
    ['an unknown expectation', HEALTH.replace('Host: x', 'Host: x\r\nExpect: x')],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])('is in every response where PUBLIC_URL is https: %s', async (_what, bytes) => {
    expect(await policyOf('https://latchkey.example', bytes)).toBe('max-age=31536000');
  });

  it('is in none where PUBLIC_URL is http', async () => {
    expect(await policyOf('http://latchkey.example', HEALTH)).toBeUndefined();
  });
});
