import { type Job, Worker } from 'bullmq';
import type { Logger } from './logger.ts';
import { QUEUE_PREFIX, type QueueJob } from './queue.ts';
import { WorkerConnection } from './queue-connection.ts';
import { jobsGivenUp, runJob, unpackJob } from './queue-origin.ts';
import { createOutageLog } from './redis.ts';
import { within } from './within.ts';

/** What works on a queue. */
export interface QueueWorkerOptions {
  readonly url: string;
  readonly queue: string;
  /** What Redis lists the connections as. */
  readonly name: string;
  /**
   * Does a job. It may be called more than once for one, also at the same time as another process is, and has to bear it. A rejection
   * makes the queue try again later.
   */
  readonly handle: (job: QueueJob) => Promise<void>;
  readonly logger: Logger;
  /** Most jobs at once; 2 unless set. */
  readonly concurrency?: number;
  /** How long a stop waits for the jobs under way, in milliseconds; 5 s unless set. Another process takes over what is left, some time later. */
  readonly stopMsMax?: number;
}

/** Works on the jobs of a queue, from a start to a stop. */
export interface QueueWorker {
  /** Begins to work, now or as soon as Redis can be reached. */
  start(): void;
  /** Takes no further job, and resolves when those under way are done or have had their time, whatever state Redis is in. */
  stop(): Promise<void>;
}

/** A job whose process has died is another's after this long and up to {@link STALLED_INTERVAL_MS}. */
const LOCK_MS = 10_000;
const STALLED_INTERVAL_MS = 5_000;
/** Processes that may die over one job until it is given up; one that is merely restarted at the wrong moment is no fault of the job. */
const STALLED_MAX = 10;
/** Wait after Redis refused to give a job, in milliseconds. */
const REFUSED_DELAY_MS = 1_000;
/** Trouble that goes on is logged once in so long. */
const TROUBLE_INTERVAL_MS = 60_000;
const STOP_MS_MAX = 5_000;
const CLOSE_TIMEOUT_MS = 500;

/** A worker that waits after a refusal: BullMQ asks again at once when Redis is full, read-only or loading its data. */
class PatientWorker extends Worker {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name);
    } catch (err) {
      if (!this.closing) await this.delay(REFUSED_DELAY_MS);
      throw err;
    }
  }
}

/** A worker on one queue. Nothing is connected before its start. */
export function createQueueWorker(options: QueueWorkerOptions): QueueWorker {
  let running: ReturnType<typeof run> | undefined;
  return {
    start() {
      running ??= run(options);
    },
    async stop() {
      await running?.stop();
      running = undefined;
    },
  };
}

function run({ url, queue, name, handle, logger, concurrency = 2, stopMsMax = STOP_MS_MAX }: QueueWorkerOptions) {
  const outages = createOutageLog(logger);
  // Seen as none, so that the first is seen as one more.
  jobsGivenUp.add(0, queue);
  const connection = new WorkerConnection(url, name, outages);
  const underWay = new Set<Promise<void>>();
  const worker = new PatientWorker(
    queue,
    async ({ id = '', name: jobName, data }: Job) => {
      const work = runJob(queue, unpackJob(id, jobName, data), handle);
      underWay.add(work);
      await work.finally(() => underWay.delete(work));
    },
    {
      connection,
      prefix: QUEUE_PREFIX,
      concurrency,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_INTERVAL_MS,
      maxStalledCount: STALLED_MAX,
      runRetryDelay: REFUSED_DELAY_MS,
      // Whatever BullMQ asks of a new connection fails for good when Redis refuses it once.
      skipWaitingForReady: true,
      skipVersionCheck: true,
    },
  );
  logProblems(worker, logger.child({ queue }), outages.isDown);
  const close = async () => {
    // Without Redis, BullMQ waits for it even to close. No job can be taken then, and those under way are waited for here.
    if (connection.status === 'ready') await within(stopMsMax, worker.close());
    else await within(stopMsMax, Promise.allSettled(underWay));
    connection.disconnectAll();
    await within(CLOSE_TIMEOUT_MS, worker.close(true));
  };
  return { stop: close };
}

/** Logs what goes wrong: each job's first failure and its last, and what BullMQ reports beside an outage, which is logged elsewhere. */
function logProblems(worker: Worker, logger: Logger, isDown: () => boolean): void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  worker.on('error', (err) => {
    if (isDown() || performance.now() - loggedAt < TROUBLE_INTERVAL_MS) return;
    loggedAt = performance.now();
    logger.warn({ err }, 'queue in trouble');
  });
  worker.on('failed', (job, err) => {
    if (!job) return;
    const { origin } = unpackJob(job.id ?? '', job.name, job.data);
    const facts = { requestId: origin?.requestId, err, jobId: job.id, job: job.name, attempt: job.attemptsMade };
    if (job.finishedOn !== undefined) {
      jobsGivenUp.add(1, worker.name);
      logger.error(facts, 'job given up');
    } else if (job.attemptsMade === 1) logger.warn(facts, 'job failed, and will be tried again');
  });
}
