import { onTestFinished } from 'vitest';
import type { QueueJob } from '../queue.ts';
import { createQueueProducer } from '../queue-producer.ts';
import { createQueueWorker, type QueueWorker, type QueueWorkerOptions } from '../queue-worker.ts';
import { memoryLogger } from './memory-logger.ts';

/** The queue of these tests. */
export const QUEUE = 'things';

/** A job of this id, which a test may tell from others by its data too. */
export const job = (id: string, data: object = {}): QueueJob => ({ id, name: 'thing', data });

/** A producer that ends with the test, and what it logged. */
export function produce(url: string) {
  const { logger, lines } = memoryLogger();
  const producer = createQueueProducer({ url, name: 'test-producer', queues: [QUEUE], logger });
  onTestFinished(() => producer.close());
  producer.connect();
  return { producer, messages: () => lines.map(({ msg }) => msg) };
}

/** A worker that has started and ends with the test, the ids it was given in their order, and what it logged. */
export function work(url: string, options: Partial<QueueWorkerOptions> = {}) {
  const { logger, lines } = memoryLogger();
  const done: string[] = [];
  const handle = async ({ id }: QueueJob) => void done.push(id);
  const worker: QueueWorker = createQueueWorker({ url, queue: QUEUE, name: 'test-worker', handle, logger, ...options });
  onTestFinished(() => worker.stop());
  worker.start();
  return { worker, done, messages: () => lines.map(({ msg }) => msg) };
}
