import type { CallOrigin } from './call-origin.ts';

/**
 * Begins the names of all keys of queues. Processes that add to a queue and processes that work on it find one another by this and the
 * queue's name alone.
 */
export const QUEUE_PREFIX = 'latchkey:queue';

/** A job as it is added. */
export interface QueueJob {
  /** Makes adding it again while it is there a matter of no effect. No whole number, and without a colon. */
  readonly id: string;
  /** What kind of job it is. */
  readonly name: string;
  /** Becomes JSON. */
  readonly data: object;
  /** Behind how many others it may stand: jobs without one come first, and then those with the smallest, each in their order. */
  readonly priority?: number;
  /** The request that it is done for; the one under way unless set, if there is one. */
  readonly origin?: CallOrigin | undefined;
}

/**
 * How a job is tried: up to 10 times, with waits of about 1 s, 2 s, 4 s … 256 s in between, some nine minutes altogether. It is removed when it
 * is done; the last 1,000 of those that failed for good are kept to be looked at.
 */
export const JOB_OPTIONS = {
  attempts: 10,
  backoff: { type: 'exponential', delay: 1_000, jitter: 0.25 },
  removeOnComplete: true,
  removeOnFail: { count: 1_000 },
  // The last error of each of the tries would otherwise be kept in whole.
  stackTraceLimit: 1,
};

/** Property of a job's data in Redis that is no data: the request that it is done for. */
export const ORIGIN_PROPERTY = '$origin';
