import { randomUUID } from 'node:crypto';
import { createLogger } from '@latchkey/kit/log/logger';
import type { QueueJob } from '@latchkey/kit/queue/job';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { eventually } from '@latchkey/testkit/eventually';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';

/** Adds jobs to the service's queue as the apps service does, in a separate Redis. */
export interface DeletionJobs {
  readonly redis: OwnRedis;
  add(...jobs: QueueJob[]): Promise<void>;
  /** Resolves when no job waits or is worked on; those that failed may wait to be tried again. */
  done(): Promise<void>;
  /** Number of jobs that failed and are to be tried again. */
  failed(): Promise<number>;
  stop(): Promise<void>;
}

/** The job of a deletion. */
export function deletion(accountId: string, applicationId: string): QueueJob {
  const id = randomUUID();
  const createdAt = new Date().toISOString();
  return { id, name: 'deleted', data: { id, applicationId, accountId, type: 'deleted', sequence: '7', data: {}, createdAt } };
}

const PREFIX = 'latchkey:queue:identity:';

export async function startDeletionJobs(): Promise<DeletionJobs> {
  const redis = await startOwnRedis();
  const logger = createLogger('producer', 'silent');
  const producer = createQueueProducer({ url: redis.url, name: 'test-producer', queues: ['identity'], logger });
  producer.connect();
  const open = () =>
    redis.ask(async (client) => {
      const lengths = await Promise.all(['wait', 'active'].map((state) => client.llen(PREFIX + state)));
      return lengths.reduce((sum, length) => sum + length, 0);
    });
  return {
    redis,
    add: (...jobs) => eventually(() => producer.add('identity', jobs)).then(() => undefined),
    done: () => eventually(async () => (await open()) === 0, { timeoutMs: 10_000 }).then(() => undefined),
    failed: () => redis.ask((client) => client.zcard(`${PREFIX}delayed`)),
    async stop() {
      await producer.close();
      await redis.remove();
    },
  };
}
