import { type Job, Worker } from 'bullmq';
import { within } from '../concurrency/within.ts';
import type { Logger } from '../log/logger.ts';
import { type CallContext, onBehalfOf } from '../log/request-context.ts';
import { createWorkerConnection } from '../redis/redis.ts';
import { Counter, Histogram } from '../telemetry/metrics.ts';
import { inSpan } from '../telemetry/tracing.ts';
import { CONTEXT_PROPERTY, QUEUE_PREFIX, type QueueJob, spanAttributes } from './job.ts';

export interface QueueWorkerOptions {
  readonly url: string;
  readonly queue: string;
  readonly name: string;
  /**
   * Processes a job. It must be idempotent: a job may be processed more than once, also by two
   * processes concurrently. A rejection makes the queue retry later.
   */
  readonly handle: (job: QueueJob) => Promise<void>;
  readonly logger: Logger;
  readonly concurrency?: number;
  /** Longest wait of a stop for running jobs, in milliseconds; 5 s unless set. */
  readonly stopMsMax?: number;
}

export type QueueWorker = ReturnType<typeof createQueueWorker>;

/** The job of a dead process goes to another one after this time and up to one interval. */
const LOCK_MS = 10_000;
const STALLED_INTERVAL_MS = 5_000;
/** Processes that may die over one job until it is given up; most are merely restarted. */
const STALLED_MAX = 10;
const REJECTED_DELAY_MS = 1_000;
/** BullMQ's errors are logged once in so long, in milliseconds. */
const ERROR_INTERVAL_MS = 60_000;
const STOP_MS_MAX = 5_000;
const CLOSE_TIMEOUT_MS = 500;
/** BullMQ waits for jobs with commands that take up to 10 s. */
const SILENCE_MS_MAX = 15_000;

const jobDurations = new Histogram({
  name: 'latchkey_queue_job_duration_seconds',
  help: 'Time that tries of jobs took, by queue and outcome: done or failed.',
  labels: ['queue', 'outcome'],
  buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
});

const jobsGivenUp = new Counter({
  name: 'latchkey_queue_jobs_given_up_total',
  help: 'Jobs that failed as often as they are tried.',
  labels: ['queue'],
});

/** Waits after an error: BullMQ retries immediately when Redis is full, read-only or loading. */
class PatientWorker extends Worker {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name);
    } catch (err) {
      if (!this.closing) await this.delay(REJECTED_DELAY_MS);
      throw err;
    }
  }
}

/** Creates a worker on one queue. Nothing is connected before its start. */
export function createQueueWorker(options: QueueWorkerOptions) {
  let stop: (() => Promise<void>) | undefined;
  return {
    /** Starts to take jobs, as soon as Redis can be reached. */
    start(): void {
      stop ??= startWorker(options);
    },
    /** Takes no further job, and waits for running ones; another process takes over the rest. */
    async stop(): Promise<void> {
      await stop?.();
      stop = undefined;
    },
  };
}

function startWorker(options: QueueWorkerOptions): () => Promise<void> {
  const { url, queue, name, handle, logger, concurrency = 2, stopMsMax = STOP_MS_MAX } = options;
  // Starts the series at 0, so that its first step is seen as one.
  jobsGivenUp.add(0, queue);
  const { redis, isDown, disconnectAll } = createWorkerConnection(url, logger, name, SILENCE_MS_MAX);
  const running = new Set<Promise<void>>();
  const processJob = async (job: Job) => {
    const work = runJob(queue, unpackJob(job), handle);
    running.add(work);
    await work.finally(() => running.delete(work));
  };
  const worker = new PatientWorker(queue, processJob, {
    connection: redis,
    prefix: QUEUE_PREFIX,
    concurrency,
    lockDuration: LOCK_MS,
    stalledInterval: STALLED_INTERVAL_MS,
    maxStalledCount: STALLED_MAX,
    runRetryDelay: REJECTED_DELAY_MS,
    // BullMQ's own checks of a new connection fail for good when Redis rejects them once.
    skipWaitingForReady: true,
    skipVersionCheck: true,
  });
  logFailures(worker, logger.child({ queue }), isDown);
  return async () => {
    // Without Redis, BullMQ waits for it even to close. No job can be taken then.
    if (redis.status === 'ready') await within(stopMsMax, worker.close());
    else await within(stopMsMax, Promise.allSettled(running));
    disconnectAll();
    await within(CLOSE_TIMEOUT_MS, worker.close(true));
  };
}

function unpackJob({ id = '', name, data: packed }: Job): QueueJob {
  const { [CONTEXT_PROPERTY]: context, ...data } = packed as Record<string, unknown>;
  return { id, name, data, context: context as CallContext | undefined };
}

/** Processes a job in the context of the request that it was added for. */
async function runJob(queue: string, job: QueueJob, handle: QueueWorkerOptions['handle']): Promise<void> {
  const { requestId = '', traceparent: parent } = job.context ?? {};
  const startedAt = performance.now();
  const span = { name: `process ${queue}`, kind: 'consumer', parent, attributes: spanAttributes(queue, 'process') } as const;
  let outcome = 'failed';
  try {
    await inSpan(span, () => onBehalfOf(requestId, () => handle(job)));
    outcome = 'done';
  } finally {
    jobDurations.observe((performance.now() - startedAt) / 1_000, queue, outcome);
  }
}

/** Logs the first and the last failure of each job, and BullMQ's errors outside of outages. */
function logFailures(worker: Worker, logger: Logger, isDown: () => boolean): void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  worker.on('error', (err) => {
    if (isDown() || performance.now() - loggedAt < ERROR_INTERVAL_MS) return;
    loggedAt = performance.now();
    logger.warn({ err }, 'queue in trouble');
  });
  worker.on('failed', (job, err) => {
    if (!job) return;
    const requestId = unpackJob(job).context?.requestId;
    const facts = { requestId, err, jobId: job.id, job: job.name, attempt: job.attemptsMade };
    if (job.finishedOn !== undefined) {
      jobsGivenUp.add(1, worker.name);
      logger.error(facts, 'job given up');
    } else if (job.attemptsMade === 1) logger.warn(facts, 'job failed, and will be tried again');
  });
}
