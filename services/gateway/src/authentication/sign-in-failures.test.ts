import type { DomainError } from '@latchkey/kit/errors/errors';
import { createLogger } from '@latchkey/kit/log/logger';
import { createFailFastRedis, type Redis } from '@latchkey/kit/redis/redis';
import { testRedis } from '@latchkey/testkit/redis';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Limiter } from '../limit/limiter.ts';
import { SignInFailures } from './sign-in-failures.ts';

const LIMIT = { name: 'sign-in-failures', max: 2, windowMs: 60_000 };
/** Attempts of an unknown network once the shared budget is spent. */
const OWN = 1;
const silent = createLogger('test', 'silent');
let redis: Redis;
let proxy: TcpProxy;
const connections: Redis[] = [];

async function connectTo(url: string): Promise<SignInFailures> {
  const connection = createFailFastRedis(url, silent);
  connections.push(connection);
  await connection.connect();
  redis ??= connection;
  return new SignInFailures({ redis: connection, limiter: new Limiter(connection, silent), limit: LIMIT, logger: silent });
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

/** How many failures in a row are allowed. */
async function failuresLeft(email: string, ip: string, by = failures): Promise<number> {
  for (let count = 0; ; count += 1) {
    const allowed = await by.begin(email, ip).then(
      () => true,
      () => false,
    );
    if (!allowed) return count;
    expect(count).toBeLessThan(10);
  }
}

/** The subject of an email in Redis. */
async function accountIn(email: string): Promise<string> {
  const [count] = await failures.begin(email, '203.0.113.78');
  return count?.subject ?? '';
}

async function signIn(email: string, ip: string): Promise<void> {
  const attempt = await failures.begin(email, ip);
  await Promise.all([failures.refund(attempt), failures.remember(email, ip)]);
}

test('unknown networks share one budget, for an email in any case', async () => {
  const email = someEmail();
  expect(await failuresLeft(email, '192.0.2.1')).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.2')).toBe(OWN);
  expect(await failuresLeft(` ${email.toUpperCase()} `, '192.0.2.2')).toBe(0);
  expect(await failuresLeft(someEmail(), '192.0.2.1')).toBe(2 + OWN);
});

test('each unknown network has one more attempt: an address, or an IPv6 /48', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  expect(await failuresLeft(email, '192.0.2.1')).toBe(0);
  expect(await failuresLeft(email, '2001:db8:1:2::1')).toBe(OWN);
  expect(await failuresLeft(email, '2001:db8:1:3::1')).toBe(0);
  expect(await failuresLeft(email, '2001:db8:2:3::1')).toBe(OWN);
  expect(await failuresLeft(someEmail(), '192.0.2.1')).toBe(2 + OWN);
});

test('a sign-in refunds its attempt, and makes its network known', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  for (let i = 0; i < 3; i += 1) await failures.refund(await failures.begin(email, '192.0.2.2'));
  await signIn(email, '192.0.2.2');
  expect(await failuresLeft(email, '192.0.2.2')).toBe(2);
});

test('100 networks have that attempt, so that many addresses do not help to guess', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  const begin = (ip: string) =>
    failures.begin(email, ip).then(
      () => true,
      () => false,
    );
  const begun = await Promise.all(Array.from({ length: 250 }, (_, i) => begin(`198.51.100.${i}`)));
  expect(begun.filter(Boolean)).toHaveLength(99);
});

test('the error says when the first window ends', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  const err = await failures.begin(email, '192.0.2.1').catch((reason: unknown) => reason);
  expect(err).toMatchObject({ reason: 'rate_limit_reached', metadata: { policy: 'sign-in-failures', limit: '2' } });
  const seconds = Number((err as DomainError).metadata.retryAfterSeconds);
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

test('an account has 20 known networks, the last used, for 30 days', async () => {
  const email = someEmail();
  for (let i = 0; i <= 20; i += 1) await signIn(email, `192.0.2.${i}`);
  const account = await accountIn(email);
  const key = `latchkey:known-networks:${account}`;
  expect(await redis.zcard(key)).toBe(20);
  expect(await redis.pttl(key)).toBeGreaterThan(30 * 86_400_000 - 60_000);
  expect(await redis.pttl(key)).toBeLessThanOrEqual(30 * 86_400_000);
  expect(await failuresLeft(email, '192.0.2.0')).toBe(1 + OWN);
  expect(await failuresLeft(email, '192.0.2.1')).toBe(2);
});

test('Redis has neither emails nor addresses', async () => {
  const email = someEmail();
  await signIn(email, '203.0.113.77');
  const account = await accountIn(email);
  const members = await redis.zrange(`latchkey:known-networks:${account}`, '0', '-1');
  expect(members).toHaveLength(1);
  expect(`${account} ${members}`).not.toMatch(/someone|203\.0/);
});

test('without Redis all networks are unknown, and sign-ins continue', async () => {
  const alone = await connectTo(proxy.url);
  const email = someEmail();
  await signIn(email, '192.0.2.1');
  await proxy.cut();
  const attempt = await alone.begin(email, '192.0.2.2');
  await Promise.all([alone.refund(attempt), alone.remember(email, '192.0.2.2')]);
  expect(await failuresLeft(email, '192.0.2.1', alone)).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.3', alone)).toBe(OWN);
  await proxy.restore();
});
