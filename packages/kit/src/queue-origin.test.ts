import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { Queue } from 'bullmq';
import { expect, it, onTestFinished } from 'vitest';
import { onBehalfOf } from './call-origin.ts';
import { QUEUE_PREFIX, type QueueJob } from './queue.ts';
import { createQueueProducer } from './queue-producer.ts';
import { createQueueWorker } from './queue-worker.ts';
import { memoryLogger } from './testing/memory-logger.ts';

const QUEUE = 'origins';

/** A queue with one job done at a time; the job `bad` fails. */
async function open() {
  const { url } = await testRedis();
  const { logger, lines } = memoryLogger();
  const jobs: QueueJob[] = [];
  const handle = async (job: QueueJob) => {
    jobs.push(job);
    logger.info('at work');
    if (job.name === 'bad') throw new Error('can not be done');
  };
  const producer = createQueueProducer({ url, name: 'test-producer', queues: [QUEUE], logger });
  const worker = createQueueWorker({ url, queue: QUEUE, name: 'test-worker', handle, logger });
  producer.connect();
  worker.start();
  onTestFinished(async () => void (await Promise.all([worker.stop(), producer.close()])));
  const add = (job: QueueJob) => eventually(() => producer.add(QUEUE, [job]));
  return { url, jobs, lines, add };
}

it('a job knows the request that it was added for, and so does every line that is logged for it', async () => {
  const { jobs, lines, add } = await open();
  await onBehalfOf('request-1', () => add({ id: 'a-1', name: 'bad', data: { n: 1 } }));
  await eventually(() => expect(lines.filter(({ msg }) => msg.startsWith('job failed'))).toHaveLength(1));
  expect(jobs).toEqual([{ id: 'a-1', name: 'bad', data: { n: 1 }, origin: { requestId: 'request-1' } }]);
  const ofJob = lines.filter(({ msg }) => msg === 'at work' || msg.startsWith('job failed'));
  expect(ofJob.map(({ requestId }) => requestId)).toEqual(['request-1', 'request-1']);
});

it('a job may be of another request than the one under way, or of none', async () => {
  const { jobs, add } = await open();
  await onBehalfOf('request-1', () => add({ id: 'b-1', name: 'good', data: {}, origin: { requestId: 'request-2' } }));
  await add({ id: 'b-2', name: 'good', data: {} });
  await eventually(() => expect(jobs).toHaveLength(2));
  expect(jobs.map(({ origin }) => origin?.requestId)).toEqual(['request-2', undefined]);
});

it('a job of a release that did not say is done all the same', async () => {
  const { url, jobs } = await open();
  const queue = new Queue(QUEUE, { connection: { url }, prefix: QUEUE_PREFIX });
  await queue.add('good', { n: 2 }, { jobId: 'c-1' });
  await queue.close();
  await eventually(() => expect(jobs).toEqual([{ id: 'c-1', name: 'good', data: { n: 2 } }]));
});
