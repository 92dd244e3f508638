import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue-worker';
import { z } from 'zod';
import { type ForgetContext, forgetApplication } from './deleted-application.ts';

/** The queue that the apps service adds to what this service wants to know. */
const QUEUE = 'files';

/** Deletions that are worked on at once. */
const CONCURRENCY = 2;

/** The part of an event that matters here. Later releases may add to it. */
const deletionEvent = z.object({
  applicationId: z.uuid().toLowerCase(),
  accountId: z.uuid().toLowerCase(),
});

/**
 * Forgets the applications that the queue tells of, whenever Redis can be reached. What fails is tried again by the queue.
 *
 * @param onObjectsToRemove called after each commit that leaves objects to remove
 */
export function createDeletionConsumer(ctx: ForgetContext, redisUrl: string, onObjectsToRemove: () => void): QueueWorker {
  return createQueueWorker({
    url: redisUrl,
    queue: QUEUE,
    name: 'latchkey-files-deletions',
    concurrency: CONCURRENCY,
    logger: ctx.logger,
    async handle({ name, data }) {
      if (name !== 'deleted') return;
      await forgetApplication(ctx, deletionEvent.parse(data), onObjectsToRemove);
    },
  });
}
