import { commonErrors, defineErrors, toConnectError } from '@latchkey/kit/errors';
import { testRedis } from '@latchkey/testkit/redis';
import { describe, expect, it } from 'vitest';
import { ACCOUNT, startTestGateway } from '../testing/test-gateway.ts';

const session = { token: 'a-token', csrfToken: 'csrf', expiresAt: { seconds: 4_000_000_000n, nanos: 0 } };

async function signIn(env: Record<string, string>): Promise<string> {
  const { url: redisUrl } = await testRedis();
  const gateway = await startTestGateway({ redisUrl, env, accounts: { signIn: async () => ({ account: ACCOUNT, session }) } });
  try {
    const response = await fetch(`${gateway.baseUrl}/api/v1/auth/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'ada@example.com', password: 'a long passphrase' }),
    });
    return response.headers.get('set-cookie') ?? '';
  } finally {
    await gateway.service.stop();
  }
}

describe('the session cookie', () => {
  it.each([
    ['https://panel.example.com', true],
    ['http://panel.example.com', true],
    ['http://localhost.example.com', true],
    ['http://128.0.0.1', true],
    ['http://127.0.0.1.example.com', true],
    ['https://localhost', true],
    ['https://127.0.0.1:8443', true],
    ['http://localhost:1234', false],
    ['http://127.0.0.1', false],
    ['http://127.9.9.9:80', false],
    ['http://[::1]:8080', false],
    ['', false],
  ])('of an instance at %j is for HTTPS alone: %s', async (PUBLIC_URL, secure) => {
    const attributes = (await signIn({ PUBLIC_URL })).split('; ');
    expect(attributes).toEqual(expect.arrayContaining(['session=a-token', 'HttpOnly', 'SameSite=Lax', 'Path=/']));
    expect(attributes.includes('Secure')).toBe(secure);
  });
});

describe('the limit of failed sign-ins', () => {
  const { sign_in_failed } = defineErrors({ sign_in_failed: { kind: 'unauthenticated', message: 'Wrong' } });

  async function attempts(times: number, signIn: () => Promise<never>): Promise<number[]> {
    const { url: redisUrl } = await testRedis();
    const env = { SIGN_IN_FAILURES_PER_15_MINUTES: '3', AUTH_ATTEMPTS_PER_MINUTE: '100' };
    const gateway = await startTestGateway({ redisUrl, env, accounts: { signIn } });
    const statuses: number[] = [];
    for (let i = 0; i < times; i += 1) {
      const response = await fetch(`${gateway.baseUrl}/api/v1/auth/sign-in`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: 'ada@example.com', password: 'a long passphrase' }),
      });
      await response.body?.cancel();
      statuses.push(response.status);
    }
    await gateway.service.stop();
    return statuses;
  }

  it('counts wrong passwords, and leaves each address one attempt more', async () => {
    const statuses = await attempts(6, async () => Promise.reject(toConnectError(sign_in_failed())));
    expect(statuses).toEqual([401, 401, 401, 401, 429, 429]);
  });

  it('does not count that identity could not say, or nobody could sign in after it was down', async () => {
    expect(await attempts(5, async () => Promise.reject(commonErrors.dependency_unavailable()))).toEqual(Array(5).fill(503));
    expect(await attempts(5, async () => Promise.reject(new Error('a defect')))).toEqual(Array(5).fill(500));
  });
});
