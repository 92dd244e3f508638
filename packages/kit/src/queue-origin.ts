import { type CallOrigin, currentOrigin, onBehalfOf } from './call-origin.ts';
import { Counter, Histogram } from './metrics/instrument.ts';
import { ORIGIN_PROPERTY, type QueueJob } from './queue.ts';
import { type ActiveSpan, activeTracer, inSpan } from './tracing/tracer.ts';

const BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

const jobsDone = new Histogram({
  name: 'latchkey_queue_job_duration_seconds',
  help: 'Time that tries of jobs took, by queue and outcome: done or failed.',
  labels: ['queue', 'outcome'],
  buckets: BUCKETS,
});

/** Counts the jobs that are not tried again. */
export const jobsGivenUp = new Counter({
  name: 'latchkey_queue_jobs_given_up_total',
  help: 'Jobs that failed as often as they are tried.',
  labels: ['queue'],
});

/** A job on its way to Redis, with the span of its sending where it is traced. */
interface SentJob {
  readonly data: object;
  readonly span: ActiveSpan | undefined;
}

/** The data of a job as it goes to Redis: with the request that it is done for, whose trace goes on at whoever does it. */
export function packJob(queue: string, { data, origin = currentOrigin() }: QueueJob): SentJob {
  if (!origin) return { data, span: undefined };
  const span =
    origin.traceparent === undefined
      ? undefined
      : activeTracer()?.start({
          name: `send ${queue}`,
          kind: 'producer',
          parent: origin.traceparent,
          attributes: attributesOf(queue, 'send'),
        });
  const sent = span ? { ...origin, traceparent: span.traceparent } : origin;
  return { data: { ...data, [ORIGIN_PROPERTY]: sent }, span };
}

/** A job as it came from Redis, without what is not its data. */
export function unpackJob(id: string, name: string, packed: object): QueueJob {
  const { [ORIGIN_PROPERTY]: origin, ...data } = packed as Record<string, unknown>;
  return { id, name, data, origin: origin as CallOrigin | undefined };
}

/** Does a job on behalf of the request that it came from, measured and traced where that is asked for. */
export async function runJob(queue: string, job: QueueJob, handle: (job: QueueJob) => Promise<void>): Promise<void> {
  const { requestId = '', traceparent } = job.origin ?? {};
  const startedAt = performance.now();
  const took = () => (performance.now() - startedAt) / 1_000;
  const attributes = attributesOf(queue, 'process');
  try {
    await inSpan({ name: `process ${queue}`, kind: 'consumer', parent: traceparent, attributes }, () =>
      onBehalfOf(requestId, () => handle(job)),
    );
    jobsDone.observe(took(), queue, 'done');
  } catch (err) {
    jobsDone.observe(took(), queue, 'failed');
    throw err;
  }
}

function attributesOf(queue: string, operation: 'send' | 'process') {
  return { 'messaging.system': 'bullmq', 'messaging.destination.name': queue, 'messaging.operation.type': operation };
}
