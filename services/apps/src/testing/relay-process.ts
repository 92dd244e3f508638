import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/log/logger';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import type { AppsDatabase } from '../db/schema.ts';
import { createRelay, QUEUES } from '../relay/relay.ts';

/** A relay that is killed in the middle of its first delivery to a queue: `before` its jobs are added, or `after`. */
const [url = '', redisUrl = '', doomedQueue = '', when = ''] = process.argv.slice(2);
const logger = createLogger('doomed', 'silent');
const database = createDatabase<AppsDatabase>({ url, schema: 'apps', logger });
const producer = createQueueProducer({ url: redisUrl, name: 'doomed', queues: QUEUES, logger, onReady: () => relay.start() });
const relay = createRelay(
  {
    db: database.db,
    clock: () => new Date(),
    producer: {
      async add(queue, jobs) {
        if (queue !== doomedQueue || when === 'after') await producer.add(queue, jobs);
        if (queue !== doomedQueue) return true;
        process.kill(process.pid, 'SIGKILL');
        return new Promise<boolean>(() => undefined);
      },
    },
  },
  logger,
);
producer.connect();
