import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue-worker';
import { z } from 'zod';
import { type RestrictionContext, removeFromRestrictions } from './restriction.ts';

/** The queue that the apps service adds to what this service wants to know. */
const QUEUE = 'identity';

/** Deletions that are worked on at once. */
const CONCURRENCY = 2;

/** The part of an event that matters here. Later releases may add to it. */
const deletionEvent = z.object({
  applicationId: z.uuid(),
  accountId: z.uuid(),
});

/**
 * Takes the applications that the queue tells of out of the restrictions of keys, whenever Redis can be reached. What fails is tried again by the
 * queue.
 */
export function createDeletionConsumer(ctx: RestrictionContext, redisUrl: string): QueueWorker {
  return createQueueWorker({
    url: redisUrl,
    queue: QUEUE,
    name: 'latchkey-identity-deletions',
    concurrency: CONCURRENCY,
    logger: ctx.logger,
    async handle({ name, data }) {
      if (name !== 'deleted') return;
      await removeFromRestrictions(ctx, deletionEvent.parse(data));
    },
  });
}
