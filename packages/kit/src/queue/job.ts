import type { CallContext } from '../log/request-context.ts';

export const QUEUE_PREFIX = 'latchkey:queue';

export interface QueueJob {
  /** A waiting job with this id is not added again. No whole number, and without a colon. */
  readonly id: string;
  readonly name: string;
  readonly data: object;
  /** Jobs without a priority come first, then the smallest; equal ones in their order. */
  readonly priority?: number;
  /** The request that the job belongs to; the current one unless set. */
  readonly context?: CallContext | undefined;
}

/** A job is tried 10 times in nine minutes, with waits of about 1 s, 2 s, 4 s … 256 s. */
export const JOB_OPTIONS = {
  attempts: 10,
  backoff: { type: 'exponential', delay: 1_000, jitter: 0.25 },
  removeOnComplete: true,
  removeOnFail: { count: 1_000 },
  stackTraceLimit: 1,
};

/** As earlier releases store it. */
export const CONTEXT_PROPERTY = '$origin';

export const spanAttributes = (queue: string, operation: 'send' | 'process') => ({
  'messaging.system': 'bullmq',
  'messaging.destination.name': queue,
  'messaging.operation.type': operation,
});
