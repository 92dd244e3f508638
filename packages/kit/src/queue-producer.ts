import { Queue } from 'bullmq';
import type { Logger } from './logger.ts';
import { JOB_OPTIONS, QUEUE_PREFIX, type QueueJob } from './queue.ts';
import { watchQueues } from './queue-metrics.ts';
import { packJob } from './queue-origin.ts';
import { connectInBackground, createFailFastRedis } from './redis.ts';

/** How jobs reach their queues. */
export interface QueueProducerOptions {
  readonly url: string;
  /** What Redis lists the connection as. */
  readonly name: string;
  readonly queues: readonly string[];
  readonly logger: Logger;
  /** Called each time that Redis can be used, or can be used again. */
  readonly onReady?: () => void;
}

/** Adds jobs to queues. */
export interface QueueProducer {
  /** Begins to connect, and goes on trying behind the scenes. */
  connect(): void;
  /**
   * Adds jobs to one of the queues, all or some of them. A job that is there already, by its id, is left as it is, so that adding all of them again is
   * always right.
   *
   * @returns whether they were added: false when {@link WAITING_MAX} jobs wait already, as nobody works on them
   * @throws Error within a second when Redis did not take all of them; nothing is kept to be sent later
   */
  add(queue: string, jobs: readonly QueueJob[]): Promise<boolean>;
  /** Closes the connection, whatever state Redis is in. */
  close(): Promise<void>;
}

/** Jobs that may wait in a queue, give or take those that are being added: Redis holds them in memory. */
export const WAITING_MAX = 10_000;

const COMMAND_TIMEOUT_MS = 1_000;
/** Jobs wait for the connection, so that it is tried more often than others. */
const RECONNECT_DELAY_MS_MAX = 500;

/** A producer for some queues, on one connection. Nothing is connected before {@link QueueProducer.connect}. */
export function createQueueProducer(options: QueueProducerOptions): QueueProducer {
  const { url, name, logger, onReady } = options;
  const redis = createFailFastRedis(url, logger, {
    name,
    commandTimeoutMs: COMMAND_TIMEOUT_MS,
    reconnectDelayMsMax: RECONNECT_DELAY_MS_MAX,
  });
  if (onReady) redis.on('ready', onReady);
  const unwatch = watchQueues(redis, options.queues);
  const queues = new Map(options.queues.map((queueName) => [queueName, openQueue(queueName)]));

  function openQueue(queueName: string): Queue {
    const queue = new Queue(queueName, {
      connection: redis,
      prefix: QUEUE_PREFIX,
      defaultJobOptions: JOB_OPTIONS,
      // Whatever BullMQ asks of a new connection fails for good when Redis is down at that moment.
      skipWaitingForReady: true,
      skipVersionCheck: true,
      skipMetasUpdate: true,
    });
    // The connection's own errors come by here as well, and have been logged.
    queue.on('error', () => undefined);
    return queue;
  }

  /** The queues that were full when they were last added to. */
  const full = new Set<string>();

  function tell(queueName: string, isFull: boolean): void {
    if (isFull) full.add(queueName);
    else full.delete(queueName);
    const facts = { queue: queueName };
    if (isFull) logger.warn(facts, 'queue is full: nobody works on it');
    else logger.info(facts, 'queue is worked on again');
  }

  /** Jobs with a priority wait elsewhere, and most queues have none. */
  async function countWaiting(queueName: string, jobs: readonly QueueJob[]): Promise<number> {
    const key = `${QUEUE_PREFIX}:${queueName}`;
    const hasPriorities = jobs.some(({ priority }) => priority);
    const [waiting, behind] = await Promise.all([
      redis.llen(`${key}:wait`),
      hasPriorities ? redis.zcard(`${key}:prioritized`) : 0,
    ]);
    return waiting + behind;
  }

  return {
    connect: () => void connectInBackground(redis),
    async add(queueName, jobs) {
      const queue = queues.get(queueName);
      if (!queue) throw new Error(`There is no queue ${queueName} here`);
      const isFull = (await countWaiting(queueName, jobs)) >= WAITING_MAX;
      if (isFull !== full.has(queueName)) tell(queueName, isFull);
      if (isFull) return false;
      const packed = jobs.map((job) => ({ job, ...packJob(queueName, job) }));
      try {
        await queue.addBulk(
          packed.map(({ job: { id, name: jobName, priority }, data }) => ({
            name: jobName,
            data,
            opts: { jobId: id, ...(priority && { priority }) },
          })),
        );
      } finally {
        for (const { span } of packed) span?.end();
      }
      return true;
    },
    async close() {
      unwatch();
      // First, as a command on its way to a frozen Redis would be waited for.
      redis.disconnect();
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}
