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

/** Time for a job beside the decoding, to read the image and to keep what is made of it, in milliseconds. */
const JOB_SLACK_MS = 5_000;

/** Makes the avatars that the queue tells of. A job whose worker died is another's after some 10 to 15 s. */
export function createAvatarWorker(ctx: MakeContext, redisUrl: string): QueueWorker {
  return createQueueWorker({
    url: redisUrl,
    queue: QUEUE,
    name: 'latchkey-files-avatar-worker',
    concurrency: ctx.avatarLimits.decodesAtOnce,
    // Whoever sent the image waits for it, and not for much longer than until another worker would take over.
    stopMsMax: ctx.avatarLimits.decodeMs + JOB_SLACK_MS,
    logger: ctx.logger,
    handle: ({ id }) => makeAvatar(ctx, id),
  });
}
