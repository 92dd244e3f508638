import { onTestFinished } from 'vitest';
import { QUEUE_PREFIX, type QueueJob } from '../queue/job.ts';
import { createQueueProducer } from '../queue/producer.ts';
import { createQueueWorker, type QueueWorkerOptions } from '../queue/worker.ts';
import { memoryLogger } from './memory-logger.ts';

export const QUEUE = 'things';

/** A key of the queue in Redis. */
export const key = (name: string) => `${QUEUE_PREFIX}:${QUEUE}:${name}`;

export const job = (id: string, data: object = {}): QueueJob => ({ id, name: 'thing', data });

/** A connected producer until the test ends, and what it logged. */
export function produce(url: string) {
  const { logger, messages } = memoryLogger();
  const producer = createQueueProducer({ url, name: 'test-producer', queues: [QUEUE], logger });
  onTestFinished(() => producer.close());
  producer.connect();
  return { producer, messages };
}

/** A running worker until the test ends, the ids of its jobs in order, and what it logged. */
export function work(url: string, options: Partial<QueueWorkerOptions> = {}) {
  const { logger, lines, messages } = memoryLogger();
  const done: string[] = [];
  const handle = async ({ id }: QueueJob) => void done.push(id);
  const worker = createQueueWorker({ url, queue: QUEUE, name: 'test-worker', handle, logger, ...options });
  onTestFinished(() => worker.stop());
  worker.start();
  return { worker, done, lines, messages };
}
