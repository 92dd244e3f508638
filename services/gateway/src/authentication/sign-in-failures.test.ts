import { hash } from 'node:crypto';
import { commonErrors, type DomainError, defineErrors } from '@latchkey/kit/errors/errors';
import { createLogger } from '@latchkey/kit/log/logger';
import { createFailFastRedis, type Redis } from '@latchkey/kit/redis/redis';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { RateLimiter } from '../rate-limit/rate-limiter.ts';
import { createSignInFailures, type SignInFailures } from './sign-in-failures.ts';

const LIMIT = { name: 'sign-in-failures', max: 2, windowMs: 60_000 };
/** Attempts of an unknown network once the shared budget is spent. */
const OWN = 1;
const { sign_in_failed } = defineErrors({ sign_in_failed: { kind: 'unauthenticated', message: 'Wrong' } });
const silent = createLogger('test', 'silent');
let redis: Redis;
let proxy: TcpProxy;
const connections: Redis[] = [];

async function connectTo(url: string): Promise<SignInFailures> {
  // A busy machine must not cause time-outs.
  const connection = createFailFastRedis(url, silent, { commandTimeout: 10_000 });
  connections.push(connection);
  await connection.connect();
  redis ??= connection;
  return createSignInFailures({ redis: connection, limiter: new RateLimiter(connection, silent), limit: LIMIT, logger: silent });
}

let failures: SignInFailures;
beforeAll(async () => {
  const { url } = await testRedis();
  failures = await connectTo(url);
  proxy = await startTcpProxy(url);
});
afterAll(async () => {
  for (const connection of connections) connection.disconnect();
  await proxy.close();
});

let emails = 0;
function someEmail(): string {
  emails += 1;
  return `someone-${emails}@example.com`;
}

const fail = (email: string, ip: string, by = failures, err: Error = sign_in_failed()) =>
  by.count(email, ip, () => Promise.reject(err)).catch((reason: unknown) => reason as DomainError);

/** Number of wrong passwords in a row that are allowed. */
async function failuresLeft(email: string, ip: string, by = failures): Promise<number> {
  for (let count = 0; ; count += 1) {
    if ((await fail(email, ip, by)).reason === 'rate_limit_reached') return count;
    expect(count).toBeLessThan(10);
  }
}

async function signIn(email: string, ip: string, by = failures): Promise<void> {
  await by.count(email, ip, async () => undefined);
  await by.remember(email, ip);
}

test('unknown networks share one budget and have one more attempt each: an address, or an IPv6 /48', async () => {
  const email = someEmail();
  expect(await failuresLeft(email, '192.0.2.1')).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.2')).toBe(OWN);
  expect(await failuresLeft(` ${email.toUpperCase()} `, '192.0.2.2')).toBe(0);
  expect(await failuresLeft(email, '2001:db8:1:2::1')).toBe(OWN);
  expect(await failuresLeft(email, '2001:db8:1:3::1')).toBe(0);
  expect(await failuresLeft(email, '2001:db8:2:3::1')).toBe(OWN);
  expect(await failuresLeft(someEmail(), '192.0.2.1')).toBe(2 + OWN);
});

test('a sign-in refunds its attempt, and makes its network known', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  for (let i = 0; i < 3; i += 1) await failures.count(email, '192.0.2.2', async () => undefined);
  await signIn(email, '192.0.2.2');
  expect(await failuresLeft(email, '192.0.2.2')).toBe(2);
});

test.each([new Error('a defect'), commonErrors.dependency_unavailable()])('other errors do not count: %s', async (err) => {
  const email = someEmail();
  for (let i = 0; i < 5; i += 1) expect(await fail(email, '192.0.2.1', failures, err)).toBe(err);
  expect(await failuresLeft(email, '192.0.2.1')).toBe(2 + OWN);
});

test('100 networks have that attempt, so that many addresses do not help to guess', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  const failed = await Promise.all(Array.from({ length: 250 }, (_, i) => fail(email, `198.51.100.${i}`)));
  expect(failed.filter(({ reason }) => reason === 'sign_in_failed')).toHaveLength(99);
});

test('the error says when the first window ends', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  const err = await fail(email, '192.0.2.1');
  expect(err).toMatchObject({ reason: 'rate_limit_reached', metadata: { policy: 'sign-in-failures', limit: '2' } });
  const seconds = Number(err.metadata.retryAfterSeconds);
  expect(seconds).toBeGreaterThan(50);
  expect(seconds).toBeLessThanOrEqual(60);
});

test('a known network has a budget, for this account only: an address, or an IPv6 /64', async () => {
  const email = someEmail();
  await signIn(email, '192.0.2.1');
  await signIn(email, '2001:db8:1:2::1');
  expect(await failuresLeft(email, '192.0.2.9')).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.1')).toBe(2);
  expect(await failuresLeft(email, '2001:db8:1:2:ffff::5')).toBe(2);
  expect(await failuresLeft(email, '2001:db8:1:3::1')).toBe(OWN);
  expect(await failuresLeft(someEmail(), '192.0.2.1')).toBe(2 + OWN);
});

test('an account has 20 known networks, the last used, for 30 days, in Redis without emails and addresses', async () => {
  const email = someEmail();
  // Networks stored in the same millisecond have no defined order.
  const start = Date.now();
  const clock = vi.spyOn(Date, 'now');
  onTestFinished(() => clock.mockRestore());
  for (let i = 0; i <= 20; i += 1) {
    clock.mockReturnValue(start + i);
    await signIn(email, `192.0.2.${i}`);
  }
  const account = hash('sha256', email, 'base64url');
  const key = `latchkey:known-networks:${account}`;
  expect(await redis.zcard(key)).toBe(20);
  expect(await redis.pttl(key)).toBeGreaterThan(30 * 86_400_000 - 60_000);
  expect(await redis.pttl(key)).toBeLessThanOrEqual(30 * 86_400_000);
  expect(`${account} ${await redis.zrange(key, '0', '-1')}`).not.toMatch(/someone|192\.0/);
  expect(await failuresLeft(email, '192.0.2.0')).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.1')).toBe(2);
});

test('without Redis all networks are unknown, and sign-ins continue', async () => {
  const alone = await connectTo(proxy.url);
  const email = someEmail();
  await signIn(email, '192.0.2.1');
  await proxy.cut();
  await signIn(email, '192.0.2.2', alone);
  expect(await failuresLeft(email, '192.0.2.1', alone)).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.3', alone)).toBe(OWN);
  await proxy.restore();
});
