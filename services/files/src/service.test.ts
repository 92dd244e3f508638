import { createLogger } from '@latchkey/kit/log/logger';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { expect, it } from 'vitest';
import { readFilesConfig } from './config.ts';
import { createFilesService } from './service.ts';
import { objectKey } from './storage/object-store/object-store.ts';
import { createFakeIdentity } from './testing/avatar/fake-identity.ts';
import { putOrphan } from './testing/damage.ts';
import { cleanedUp, remainsOf } from './testing/remains.ts';
import { storeFile } from './testing/stored-file.ts';
import { SECRET_KEY, useTestFiles } from './testing/test-files.ts';

const files = useTestFiles();

it('cleans up after a deletion whose job was lost, and reports an object without a row', async () => {
  const ref = files.createOwned();
  const key = objectKey(ref.applicationId, await storeFile(files, ref));
  const orphan = await putOrphan(files);
  files.apps.deletions.push(ref);
  const config = readFilesConfig({
    DATABASE_URL: files.url,
    REDIS_URL: (await testRedis()).url,
    SECRET_KEY,
    OBJECTS_DIR: files.objectsDir,
  });
  const lines: string[] = [];
  const service = createFilesService(config, {
    appsTransport: files.apps.transport,
    identityTransport: createFakeIdentity().transport,
    logger: createLogger('files', 'warn', { write: (line) => void lines.push(line) }),
  });
  await service.start();
  await eventually(async () => {
    expect(await remainsOf(files.db, ref.applicationId)).toEqual(cleanedUp(0));
    expect(await files.ctx.store.stat(key)).toBeUndefined();
    expect(lines.join()).toContain(`"count":1,"examples":["${orphan}"]`);
  }).finally(() => service.stop());
});
