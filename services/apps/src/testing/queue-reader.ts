import { createLogger } from '@latchkey/kit/log/logger';
import type { QueueJob } from '@latchkey/kit/queue/job';
import { createQueueWorker } from '@latchkey/kit/queue/worker';

/** Reads a queue from now on, one job after the other, and stores them in the queue's order. */
export function readQueue(url: string, queue: string) {
  const jobs: QueueJob[] = [];
  const handle = async (job: QueueJob) => void jobs.push(job);
  const logger = createLogger('reader', 'silent');
  const worker = createQueueWorker({ url, queue, name: 'test-reader', handle, logger, concurrency: 1 });
  worker.start();
  const applications = () => jobs.map(({ data }) => (data as { applicationId: string }).applicationId);
  return {
    jobs,
    /** The applications that jobs were about, each once, in order. */
    applications: () => [...new Set(applications())].sort(),
    stop: () => worker.stop(),
  };
}
