import { createLogger } from '@latchkey/kit/logger';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { expect, it, onTestFinished } from 'vitest';
import { readFilesConfig } from './config.ts';
import { createFilesService } from './service.ts';
import { objectKey } from './storage/object-store/object-store.ts';
import { createFakeIdentity } from './testing/avatar/fake-identity.ts';
import { createFakeDeletions } from './testing/fake-deletions.ts';
import { forgotten, remainsOf } from './testing/remains.ts';
import { storeFile } from './testing/stored-file.ts';
import { SECRET_KEY, startTestFiles } from './testing/test-files.ts';

it('removes the files of a deleted application whose job was lost', async () => {
  const files = await startTestFiles();
  onTestFinished(() => files.stop());
  const ref = files.createOwned();
  const key = objectKey(ref.applicationId, await storeFile(files, ref));
  const deletions = createFakeDeletions();
  deletions.add(ref, new Date());
  const config = readFilesConfig({
    DATABASE_URL: files.url,
    REDIS_URL: (await testRedis()).url,
    SECRET_KEY,
    OBJECTS_DIR: files.objectsDir,
  });
  const service = createFilesService(config, {
    appsTransport: deletions.transport,
    identityTransport: createFakeIdentity().transport,
    logger: createLogger('files', 'silent'),
  });
  await service.start();
  await eventually(async () => {
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(forgotten(0));
    expect(await files.ctx.store.stat(key)).toBeUndefined();
  }).finally(() => service.stop());
});
