import { eventually } from '@latchkey/testkit/eventually';
import { createAuthority } from '@latchkey/testkit/network/certificates';
import { findFreePort } from '@latchkey/testkit/network/free-port';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { expect, it, onTestFinished } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { startTcpServer } from '../testing/servers.ts';
import { startTlsRedis, trustAuthority } from '../testing/tls.ts';
import { checkRedisAccess, connectInBackground, createFailFastRedis, createRedis } from './redis.ts';

const PATIENCE = { timeoutMs: 15_000 };

const authority = await createAuthority();

async function startTlsSentinel(primary: string, certificate = authority.issue()): Promise<string> {
  const monitor = `sentinel monitor latchkey ${primary.replace(':', ' ')} 1\nsentinel auth-pass latchkey watchword`;
  const sentinel = await startTlsRedis(authority, certificate, [monitor, '--sentinel']);
  return `rediss+sentinel://:watchword@${sentinel}/latchkey?sentinel_password=watchword`;
}

async function expectUse(url: string, makeReady = async () => {}) {
  const redis = createFailFastRedis(url, memoryLogger().logger);
  onTestFinished(() => redis.disconnect());
  await connectInBackground(redis);
  await makeReady();
  await eventually(async () => expect(await redis.ping()).toBe('PONG'), PATIENCE);
  await checkRedisAccess(url);
}

const rejects = (url: string, reason: RegExp) =>
  eventually(() => expect(checkRedisAccess(url)).rejects.toThrow(reason), PATIENCE);
const NOT_TRUSTED =
  /^REDIS_URL, at 127\.0\.0\.1:\d+, can't be used: the server's certificate is not trusted \(.*\): for a private authority, set NODE_EXTRA_CA_CERTS to its PEM file$/;
const OTHER_NAME = /the server's certificate is for another name \(.*\): use a host in REDIS_URL that it is for$/;
const NO_TLS =
  /the server has no TLS on this port: use a port with TLS, or write redis:\/\/ instead of rediss:\/\/ in REDIS_URL$/;

it('TLS to Redis, and to Sentinel and its primary, with an authority of NODE_EXTRA_CA_CERTS', async () => {
  const primary = await startTlsRedis(authority);
  const sentinelUrl = await startTlsSentinel(primary);
  await rejects(`rediss://:watchword@${primary}`, NOT_TRUSTED);
  await rejects(sentinelUrl, NOT_TRUSTED);
  trustAuthority(authority);
  await expectUse(`rediss://:watchword@${primary}`);
  await expectUse(sentinelUrl);
});

it('a cluster with TLS rejects a wrong password, and is used once it serves all slots', async () => {
  const lines = `cluster-enabled yes\ncluster-announce-ip 127.0.0.1\ncluster-port ${await findFreePort()}\ntls-cluster yes`;
  const node = await startTlsRedis(authority, authority.issue(), [lines]);
  const url = `rediss+cluster://:watchword@${node}`;
  await rejects(url, NOT_TRUSTED);
  trustAuthority(authority);
  await rejects(`rediss+cluster://:wrong@${node}`, /^redis rejects the user or the password of REDIS_URL, at .*: WRONGPASS /);
  await checkRedisAccess(url);
  const owner = createRedis(`rediss://:watchword@${node}`, { enableReadyCheck: false });
  onTestFinished(() => owner.disconnect());
  await expectUse(url, async () => void (await owner.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')));
});

it('rejects a certificate for another name at start, of Redis, a Sentinel, and the primary behind one', async () => {
  trustAuthority(authority);
  const [right, other] = [() => authority.issue(), () => authority.issue({ hosts: ['redis.example'] })];
  const primary = await startTlsRedis(authority, other());
  await rejects(`rediss://:watchword@${primary}`, OTHER_NAME);
  await rejects(await startTlsSentinel(primary, right()), OTHER_NAME);
  await rejects(await startTlsSentinel(await startTlsRedis(authority, right()), other()), OTHER_NAME);
});

it('rejects TLS to a port without it at start, and the reverse, and sends no password there', async () => {
  await rejects(Object.assign(new URL((await testRedis()).url), { protocol: 'rediss:' }).href, NO_TLS);
  let received = '';
  const { port } = await startTcpServer((socket) =>
    socket.on('data', (bytes) => {
      received += bytes;
      socket.write('-NOAUTH Authentication required.\r\n');
    }),
  );
  await rejects(`rediss+sentinel://:watchword@127.0.0.1:1,127.0.0.1:${port}/latchkey?sentinel_password=watchword`, NO_TLS);
  expect(received).toContain('PING');
  expect(received).not.toContain('watchword');
  const primary = await startTlsRedis(authority);
  await rejects(
    `redis://:watchword@${primary}`,
    /the server has TLS on this port: write rediss:\/\/ instead of redis:\/\/ in REDIS_URL$/,
  );
});

it('names a client certificate that Redis wants', async () => {
  trustAuthority(authority);
  const primary = await startTlsRedis(authority, authority.issue(), ['tls-auth-clients yes']);
  await rejects(`rediss://:watchword@${primary}`, /TLS with the server fails \(tlsv13 alert certificate required\)$/);
});
