import type { DomainError } from '@latchkey/kit/errors';
import { createLogger } from '@latchkey/kit/logger';
import { createFailFastRedis, type Redis } from '@latchkey/kit/redis';
import { testRedis } from '@latchkey/testkit/redis';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Limiter } from '../limit/limiter.ts';
import { SignInFailures } from './sign-in-failures.ts';

const LIMIT = { name: 'sign-in-failures', max: 2, windowMs: 60_000 };
/** What a network that is not known has for itself. */
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

/** How many failures in a row are let through: of who is a stranger, one is that network's own. */
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

/** How an email is named in Redis, by the first failure of a stranger, which this is. */
async function accountIn(email: string): Promise<string> {
  const { counts } = await failures.begin(email, '203.0.113.78');
  return counts[0]?.subject ?? '';
}

async function signIn(email: string, ip: string): Promise<void> {
  const attempt = await failures.begin(email, ip);
  await Promise.all([failures.takeBack(attempt), failures.remember(email, ip)]);
}

test('strangers share one budget, wherever they are, and in whatever case they write the email', async () => {
  const email = someEmail();
  expect(await failuresLeft(email, '192.0.2.1')).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.2')).toBe(OWN);
  expect(await failuresLeft(` ${email.toUpperCase()} `, '192.0.2.2')).toBe(0);
  expect(await failuresLeft(someEmail(), '192.0.2.1')).toBe(2 + OWN);
});

test('once that is spent each network has one attempt more: an address, or an IPv6 /48', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  expect(await failuresLeft(email, '192.0.2.1')).toBe(0);
  expect(await failuresLeft(email, '2001:db8:1:2::1')).toBe(OWN);
  expect(await failuresLeft(email, '2001:db8:1:3::1')).toBe(0);
  expect(await failuresLeft(email, '2001:db8:2:3::1')).toBe(OWN);
  expect(await failuresLeft(someEmail(), '192.0.2.1')).toBe(2 + OWN);
});

test('who signs in by that attempt has it again, and from then on is at home', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  for (let i = 0; i < 3; i += 1) await failures.takeBack(await failures.begin(email, '192.0.2.2'));
  await signIn(email, '192.0.2.2');
  expect(await failuresLeft(email, '192.0.2.2')).toBe(2);
});

test('a hundred networks have that attempt, so that having many is no way to guess', async () => {
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

test('the refusal says when the first of the windows ends', async () => {
  const email = someEmail();
  await failuresLeft(email, '192.0.2.1');
  const err = await failures.begin(email, '192.0.2.1').catch((reason: unknown) => reason);
  expect(err).toMatchObject({ reason: 'rate_limit_reached', metadata: { policy: 'sign-in-failures', limit: '2' } });
  const seconds = Number((err as DomainError).metadata.retryAfterSeconds);
  expect(seconds).toBeGreaterThan(50);
  expect(seconds).toBeLessThanOrEqual(60);
});

test('a network that somebody signed in from has a budget of its own: an address, or an IPv6 /64', async () => {
  const email = someEmail();
  await signIn(email, '192.0.2.1');
  await signIn(email, '2001:db8:1:2::1');
  expect(await failuresLeft(email, '192.0.2.9')).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.1')).toBe(2);
  expect(await failuresLeft(email, '2001:db8:1:2:ffff::5')).toBe(2);
  expect(await failuresLeft(email, '2001:db8:1:3::1')).toBe(OWN);
});

test('who signed in to one account is no less a stranger to another', async () => {
  const [mine, other] = [someEmail(), someEmail()];
  await signIn(mine, '192.0.2.1');
  expect(await failuresLeft(other, '192.0.2.2')).toBe(2 + OWN);
  expect(await failuresLeft(other, '192.0.2.1')).toBe(OWN);
});

test('who has only tried, or was let in by half, is a stranger', async () => {
  const email = someEmail();
  await failures.takeBack(await failures.begin(email, '192.0.2.1'));
  expect(await failuresLeft(email, '192.0.2.2')).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.1')).toBe(OWN);
});

test('twenty networks are known of an account, those used last, for thirty days', async () => {
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

test('neither emails nor addresses stand in Redis beside each other', async () => {
  const email = someEmail();
  await signIn(email, '203.0.113.77');
  const account = await accountIn(email);
  const members = await redis.zrange(`latchkey:known-networks:${account}`, '0', '-1');
  expect(members).toHaveLength(1);
  expect(`${account} ${members}`).not.toMatch(/someone|203\.0/);
});

test('without Redis everybody is a stranger, and sign-ins go on', async () => {
  const alone = await connectTo(proxy.url);
  const email = someEmail();
  await signIn(email, '192.0.2.1');
  await proxy.cut();
  const attempt = await alone.begin(email, '192.0.2.2');
  await Promise.all([alone.takeBack(attempt), alone.remember(email, '192.0.2.2')]);
  expect(await failuresLeft(email, '192.0.2.1', alone)).toBe(2 + OWN);
  expect(await failuresLeft(email, '192.0.2.3', alone)).toBe(OWN);
  await proxy.restore();
});
