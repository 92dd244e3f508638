import { randomUUID } from 'node:crypto';
import { createLogger } from '@latchkey/kit/log/logger';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { startOwnRedis } from '@latchkey/testkit/redis/own-redis';
import { expect, onTestFinished, test } from 'vitest';
import { openTestIdentity } from './testing/identity.ts';
import { createSomeKey, someAccountId } from './testing/sample.ts';

/** A statement times out after 4.5 s, and a job under way has 5 s. */
const STOP_MS_MAX = 7_000;

test('a service whose PostgreSQL freezes in the middle of a deletion job, and then Redis, stops in time', async () => {
  const ownRedis = await startOwnRedis();
  const identity = await openTestIdentity({ REDIS_URL: ownRedis.url });
  const [postgres, redis] = [await startTcpProxy(identity.env.DATABASE_URL ?? ''), await startTcpProxy(ownRedis.url)];
  const logger = createLogger('producer', 'silent');
  const producer = createQueueProducer({ url: ownRedis.url, name: 'test-producer', queues: ['identity'], logger });
  producer.connect();
  onTestFinished(async () => {
    await Promise.all([postgres.close(), redis.close(), producer.close()]);
    await ownRedis.remove();
  });
  const { service } = identity.connect({ env: { DATABASE_URL: postgres.url, REDIS_URL: redis.url } });
  await service.start();
  const accountId = await someAccountId(identity);
  const applicationIds = identity.apps.createApplications(accountId, 2);
  await createSomeKey(identity, { accountId, allApplications: false, applicationIds });
  const deleteApplication = (applicationId = '') =>
    eventually(() => producer.add('identity', [{ id: randomUUID(), name: 'deleted', data: { applicationId, accountId } }]));
  await deleteApplication(applicationIds[0]);
  const listed = async () => (await identity.apiKeys.listApiKeys({ accountId })).apiKeys[0]?.applicationIds;
  await eventually(async () => expect(await listed()).toEqual([applicationIds[1]]));
  postgres.freeze();
  await deleteApplication(applicationIds[1]);
  const active = () => ownRedis.ask((client) => client.llen('latchkey:queue:identity:active'));
  await eventually(async () => (await active()) > 0);
  redis.freeze();
  const startedAt = performance.now();
  await service.stop();
  expect(performance.now() - startedAt).toBeLessThan(STOP_MS_MAX);
});
