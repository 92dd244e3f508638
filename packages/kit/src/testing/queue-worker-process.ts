import { appendFileSync } from 'node:fs';
import { createLogger } from '../log/logger.ts';
import { createQueueWorker } from '../queue/worker.ts';

/** A process for the tests of queues: it takes a job, writes its id to a file and never ends it. */
const [url = '', queue = '', path = ''] = process.argv.slice(2);

createQueueWorker({
  url,
  queue,
  name: 'doomed',
  logger: createLogger('doomed', 'silent'),
  async handle({ id }) {
    appendFileSync(path, id);
    await new Promise(() => undefined);
  },
}).start();
