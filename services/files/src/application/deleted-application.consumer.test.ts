import { randomUUID } from 'node:crypto';
import { createLogger } from '@latchkey/kit/log/logger';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createFakeDeletions } from '../testing/fake-deletions.ts';
import { forgotten, insertFiles, remainsOf } from '../testing/remains.ts';
import { startTestFiles, type TestFiles } from '../testing/test-files.ts';
import { createDeletionFollower } from './deleted-application.consumer.ts';

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

async function open() {
  const redisUrl = (await testRedis()).url;
  const deletions = createFakeDeletions();
  let calls = 0;
  const follower = createDeletionFollower(files.ctx, { redisUrl, appsTransport: deletions.transport }, () => {
    calls += 1;
  });
  const reconcile = () => follower.reconcile(new AbortController().signal);
  return { redisUrl, deletions, worker: follower.worker, reconcile, calls: () => calls };
}

async function ownedWithFile() {
  const ref = files.createOwned();
  await insertFiles(files.db, ref, 1);
  return ref;
}

const isForgotten = async ({ applicationId }: { applicationId: string }) =>
  expect(await remainsOf(files.db, applicationId)).toEqual(forgotten(1));

it('the job of a deletion removes the files, and reports that objects are to be removed', async () => {
  const { redisUrl, worker, calls } = await open();
  const logger = createLogger('producer', 'silent');
  const producer = createQueueProducer({ url: redisUrl, name: 'test-producer', queues: ['files'], logger });
  onTestFinished(async () => void (await Promise.all([worker.stop(), producer.close()])));
  producer.connect();
  worker.start();
  const ref = await ownedWithFile();
  await eventually(() => producer.add('files', [{ id: randomUUID(), name: 'deleted', data: ref }]));
  await eventually(() => isForgotten(ref));
  await eventually(() => expect(calls()).toBe(1));
});

it('a reconciliation removes the files of applications without a job, and those of unfinished ones', async () => {
  const { deletions, reconcile } = await open();
  const refs = await Promise.all(Array.from({ length: 5 }, ownedWithFile));
  for (const ref of refs) deletions.add(ref, files.clock.now());
  const unfinished = await ownedWithFile();
  await files.db.query('insert into deleted_application (application_id) values ($1)', [unfinished.applicationId]);
  await reconcile();
  for (const ref of [...refs, unfinished]) await isForgotten(ref);
  const sent = await statementsOf(async () => reconcile());
  expect(sent.map(({ text }) => text.trim().split(' ', 1)[0])).toEqual(['select', 'select', 'select']);
});
