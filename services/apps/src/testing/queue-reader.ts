import { createLogger } from '@latchkey/kit/log/logger';
import type { QueueJob } from '@latchkey/kit/queue/job';
import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue/worker';

/** A consumer that only keeps what it is given. */
export interface QueueReader extends Pick<QueueWorker, 'stop'> {
  readonly jobs: QueueJob[];
  /** The applications that jobs were about, each once, in order. */
  applications(): string[];
}

/** Reads a queue from now on, one job after the other, so that they are kept in the order of the queue. */
export function readQueue(url: string, queue: string): QueueReader {
  const jobs: QueueJob[] = [];
  const handle = async (job: QueueJob) => void jobs.push(job);
  const worker = createQueueWorker({
    url,
    queue,
    name: 'test-reader',
    handle,
    logger: createLogger('reader', 'silent'),
    concurrency: 1,
  });
  worker.start();
  const applications = () => jobs.map(({ data }) => (data as { applicationId: string }).applicationId);
  return { jobs, applications: () => [...new Set(applications())].sort(), stop: () => worker.stop() };
}
