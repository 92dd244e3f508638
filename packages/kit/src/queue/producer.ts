import { Queue } from 'bullmq';
import type { Logger } from '../log/logger.ts';
import { currentContext } from '../log/request-context.ts';
import { connectInBackground, createFailFastRedis, type Redis } from '../redis/redis.ts';
import { Gauge, watchProbe } from '../telemetry/metrics.ts';
import { activeTracer, formatTraceparent } from '../telemetry/tracing.ts';
import { CONTEXT_PROPERTY, JOB_OPTIONS, QUEUE_PREFIX, type QueueJob, spanAttributes } from './job.ts';

export type QueueProducer = ReturnType<typeof createQueueProducer>;

/** Most jobs that wait in a queue, which Redis holds in memory. */
export const WAITING_MAX = 10_000;

export function createQueueProducer(options: {
  readonly url: string;
  readonly name: string;
  readonly queues: readonly string[];
  readonly logger: Logger;
  readonly onReady?: () => void;
}) {
  const { url, name, queues: names, logger, onReady } = options;
  const redis = createFailFastRedis(url, logger, { name, commandTimeout: 1_000, reconnectDelayMsMax: 500 });
  if (onReady) redis.on('ready', onReady);
  const queues = new Map(names.map((queueName) => [queueName, openQueue(queueName, redis)]));
  const unwatch = watchQueues(name, [...queues.values()]);
  const full = new Set<string>();
  const logFull = (queue: string, isFull: boolean) => {
    if (isFull && !full.has(queue)) logger.warn({ queue }, 'queue is full: no worker takes its jobs');
    if (isFull) full.add(queue);
    else if (full.delete(queue)) logger.info({ queue }, 'queue takes jobs again');
  };
  return {
    connect: () => void connectInBackground(redis),
    /**
     * Adds jobs to one of the queues, all or some of them. A waiting job with the same id stays
     * unchanged, so that adding all of them again is safe.
     *
     * @returns false when {@link WAITING_MAX} jobs wait already
     * @throws Error within a second when Redis did not take all of them; nothing is sent later
     */
    async add(queueName: string, jobs: readonly QueueJob[]): Promise<boolean> {
      const queue = queues.get(queueName);
      if (!queue) throw new Error(`Unknown queue ${queueName}`);
      const isFull = (await queue.getJobCountByTypes('waiting', 'prioritized')) >= WAITING_MAX;
      logFull(queueName, isFull);
      if (!isFull) await addTraced(queue, jobs);
      return !isFull;
    },
    async close() {
      unwatch();
      // First, as BullMQ would wait for a command on its way to a frozen Redis.
      redis.disconnect();
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}

function openQueue(queueName: string, connection: Redis): Queue {
  const queue = new Queue(queueName, {
    connection,
    prefix: QUEUE_PREFIX,
    defaultJobOptions: JOB_OPTIONS,
    // BullMQ's own checks of a new connection fail for good when Redis is down at that moment.
    skipWaitingForReady: true,
    skipVersionCheck: true,
    skipMetasUpdate: true,
  });
  // The connection logs its errors itself.
  queue.on('error', () => undefined);
  return queue;
}

async function addTraced(queue: Queue, jobs: readonly QueueJob[]): Promise<void> {
  const attributes = spanAttributes(queue.name, 'send');
  const sent = jobs.map(({ id, name, data, priority, context = currentContext() }) => {
    const parent = context?.traceparent;
    const span = parent && activeTracer()?.start({ name: `send ${queue.name}`, kind: 'producer', parent, attributes });
    const packed = context && { [CONTEXT_PROPERTY]: { ...context, ...(span && { traceparent: formatTraceparent(span) }) } };
    return { span, job: { name, data: { ...data, ...packed }, opts: { jobId: id, ...(priority && { priority }) } } };
  });
  try {
    await queue.addBulk(sent.map(({ job }) => job));
  } finally {
    for (const { span } of sent) if (span) span.end();
  }
}

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

function watchQueues(producer: string, queues: readonly Queue[]): () => void {
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
