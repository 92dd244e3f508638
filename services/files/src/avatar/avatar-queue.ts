import type { Logger } from '@latchkey/kit/logger';
import { createQueueProducer, type QueueProducer } from '@latchkey/kit/queue-producer';
import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue-worker';
import { type MakeContext, makeAvatar } from './make-avatar.ts';
import type { EnqueueAvatar } from './receive-avatar.ts';

const QUEUE = 'avatar';
const JOB = 'make';

/** Tells workers of avatars to make. The queue only carries: what is to be made, and whether it still is, says the database. */
export function createAvatarQueue(redisUrl: string, logger: Logger): QueueProducer & { enqueue: EnqueueAvatar } {
  const producer = createQueueProducer({ url: redisUrl, name: 'latchkey-files-avatars', queues: [QUEUE], logger });
  return {
    ...producer,
    async enqueue(id, priority) {
      if (!(await producer.add(QUEUE, [{ id, name: JOB, data: {}, priority }]))) throw new Error('The avatar queue is full');
    },
  };
}

/** Makes the avatars that the queue tells of. A job whose worker died is another's after some 10 to 15 s. */
export function createAvatarWorker(ctx: MakeContext, redisUrl: string): QueueWorker {
  return createQueueWorker({
    url: redisUrl,
    queue: QUEUE,
    name: 'latchkey-files-avatar-worker',
    concurrency: ctx.avatarLimits.decodesAtOnce,
    logger: ctx.logger,
    handle: ({ id }) => makeAvatar(ctx, id),
  });
}
