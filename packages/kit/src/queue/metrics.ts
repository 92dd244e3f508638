import type { Queue } from 'bullmq';
import { Gauge, watchProbe } from '../telemetry/metrics.ts';

const queueJobs = new Gauge({
  name: 'latchkey_queue_jobs',
  help: 'Jobs in a queue, by state: waiting, active, delayed or failed. Every process that adds to the queue reports all of them.',
  labels: ['queue', 'state'],
});

const oldestWaiting = new Gauge({
  name: 'latchkey_queue_oldest_waiting_seconds',
  help: 'Age of the job that has waited longest in a queue; 0 when none waits.',
  labels: ['queue'],
});

/** Jobs with a priority whose ages are read: the oldest is not always the first. */
const PRIORITIZED_READ_MAX = 100;

export function watchQueues(producer: string, queues: readonly Queue[]): () => void {
  return watchProbe(`queues of ${producer}`, () => Promise.all(queues.map(readState)), [
    [queueJobs, (states) => states.flatMap(({ counts }) => counts)],
    [oldestWaiting, (states) => states.map(({ oldest }) => oldest)],
  ]);
}

async function readState(queue: Queue) {
  const [{ waiting = 0, prioritized = 0, ...others }, first, prioritizedJobs] = await Promise.all([
    queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed'),
    queue.getJobs('waiting', 0, 0, true),
    queue.getJobs('prioritized', 0, PRIORITIZED_READ_MAX - 1, true),
  ]);
  const ages = [...first, ...prioritizedJobs].map(({ timestamp }) => (Date.now() - timestamp) / 1_000);
  const counts = Object.entries({ waiting: waiting + prioritized, ...others });
  return {
    counts: counts.map(([state, count]) => [count, queue.name, state] as const),
    oldest: [Math.max(0, ...ages), queue.name] as const,
  };
}
