import { randomUUID } from 'node:crypto';
import { createLogger } from '@latchkey/kit/log/logger';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { expect, it, onTestFinished } from 'vitest';
import { readFilesConfig } from './config.ts';
import { createFilesService } from './service.ts';
import { objectKey } from './storage/object-store/object-store.ts';
import { createFakeIdentity } from './testing/avatar/fake-identity.ts';
import { putOrphan } from './testing/damage.ts';
import { cleanedUp, insertFiles, remainsOf } from './testing/remains.ts';
import { storeFile } from './testing/stored-file.ts';
import { SECRET_KEY, useTestFiles } from './testing/test-files.ts';

const files = useTestFiles();

it('cleans up after deletions by their job, without one and after a crash, and reports objects without a row', async () => {
  const [lost, unfinished, queued] = [files.createOwned(), files.createOwned(), files.createOwned()];
  const key = objectKey(lost.applicationId, await storeFile(files, lost));
  for (const ref of [unfinished, queued]) await insertFiles(files.db, ref, 1);
  files.apps.deletions.push(lost);
  await files.db.query('insert into deleted_application (application_id) values ($1)', [unfinished.applicationId]);
  const orphan = await putOrphan(files);
  const { url: redisUrl } = await testRedis();
  const lines: string[] = [];
  const logger = createLogger('files', 'warn', { write: (line) => void lines.push(line) });
  const env = { DATABASE_URL: files.url, REDIS_URL: redisUrl, SECRET_KEY, OBJECTS_DIR: files.objectsDir };
  const transports = { appsTransport: files.apps.transport, identityTransport: createFakeIdentity().transport };
  const service = createFilesService(readFilesConfig(env), { ...transports, logger });
  const producer = createQueueProducer({ url: redisUrl, name: 'test-producer', queues: ['files'], logger });
  onTestFinished(async () => void (await Promise.all([service.stop(), producer.close()])));
  producer.connect();
  await service.start();
  await eventually(async () => {
    for (const { applicationId } of [lost, unfinished]) expect(await remainsOf(files.db, applicationId)).toEqual(cleanedUp(0));
    expect(await files.ctx.store.stat(key)).toBeUndefined();
    expect(lines.join()).toContain(`"count":1,"examples":["${orphan}"]`);
  });
  await eventually(() => producer.add('files', [{ id: randomUUID(), name: 'deleted', data: queued }]));
  // The clean-up wakes the sweeper that removes objects.
  await eventually(async () => expect(await remainsOf(files.db, queued.applicationId)).toEqual(cleanedUp(0)));
});
