import { createLogger } from '@latchkey/kit/logger';
import { createEventConsumer } from '../fan-out/application-event.consumer.ts';

/** A worker of the queue that is killed with its first job in hand, before it has told anybody. */
const [redisUrl = ''] = process.argv.slice(2);
const consumer = createEventConsumer({
  redisUrl,
  logger: createLogger('doomed', 'silent'),
  async publish() {
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => undefined);
  },
});
consumer.start();
