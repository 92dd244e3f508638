import { randomUUID } from 'node:crypto';
import { createLogger } from '@latchkey/kit/log/logger';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { statementsOf } from '@latchkey/testkit/statements';
import { expect, it, onTestFinished } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { cleanedUp, insertFiles, remainsOf } from '../../testing/remains.ts';
import { useTestFiles } from '../../testing/test-files.ts';
import { createDeletionFollower } from './deleted-application.consumer.ts';

const files = useTestFiles();

async function open() {
  const redisUrl = (await testRedis()).url;
  let calls = 0;
  const follower = createDeletionFollower(files.ctx, { redisUrl, appsTransport: files.apps.transport }, () => {
    calls += 1;
  });
  const reconcile = () => follower.reconcile(new AbortController().signal);
  return { redisUrl, worker: follower.worker, reconcile, calls: () => calls };
}

async function ownedWithFile(): Promise<OwnedRef> {
  const ref = files.createOwned();
  await insertFiles(files.db, ref, 1);
  return ref;
}

const expectCleanedUp = async ({ applicationId }: OwnedRef) =>
  expect(await remainsOf(files.db, applicationId)).toEqual(cleanedUp(1));

it('the job of a deletion removes the files, and reports that objects are to be removed', async () => {
  const { redisUrl, worker, calls } = await open();
  const logger = createLogger('producer', 'silent');
  const producer = createQueueProducer({ url: redisUrl, name: 'test-producer', queues: ['files'], logger });
  onTestFinished(async () => void (await Promise.all([worker.stop(), producer.close()])));
  producer.connect();
  worker.start();
  const ref = await ownedWithFile();
  await eventually(() => producer.add('files', [{ id: randomUUID(), name: 'deleted', data: ref }]));
  await eventually(() => expectCleanedUp(ref));
  await eventually(() => expect(calls()).toBe(1));
});

it('a reconciliation removes the files of applications without a job, and those of unfinished ones', async () => {
  const { reconcile } = await open();
  const refs = await Promise.all(Array.from({ length: 5 }, ownedWithFile));
  files.apps.deletions.push(...refs);
  const unfinished = await ownedWithFile();
  await files.db.query('insert into deleted_application (application_id) values ($1)', [unfinished.applicationId]);
  await reconcile();
  for (const ref of [...refs, unfinished]) await expectCleanedUp(ref);
  const sent = await statementsOf(async () => reconcile());
  expect(sent.map(({ text }) => text.trim().split(/\s/, 1)[0])).toEqual(['select', 'select']);
});
