import type { Queue } from 'bullmq';
import { Gauge, isMeasuring, Probe } from '../telemetry/metrics.ts';

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
  if (!isMeasuring()) return () => undefined;
  const probe = new Probe({ name: `queues of ${producer}`, read: () => Promise.all(queues.map(readState)) });
  const unwatch = [
    probe.watch(),
    queueJobs.watch(() => (probe.value ?? []).flatMap(({ counts }) => counts)),
    oldestWaiting.watch(() => (probe.value ?? []).map(({ oldest }) => oldest)),
  ];
  return () => {
    for (const end of unwatch) end();
  };
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
