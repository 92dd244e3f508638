import { randomUUID } from 'node:crypto';
import { createClient } from '@connectrpc/connect';
import { fromConnectError } from '@latchkey/kit/errors';
import { createLogger } from '@latchkey/kit/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/direct-transport';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { createTestDatabase } from '@latchkey/testkit/database';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readAppsConfig } from '../config.ts';
import { createAppsService } from '../service.ts';

const SECRET_KEY = 'test-secret-key-of-32-characters!';
let stop: () => Promise<void>;
let client: ReturnType<typeof connect>;

function connect(url: string) {
  const service = createAppsService(readAppsConfig({ DATABASE_URL: url, SECRET_KEY, LOG_LEVEL: 'silent' }));
  stop = service.stop;
  return createClient(ApplicationService, createDirectTransport(service.routes, createLogger('apps', 'silent')));
}

beforeAll(async () => {
  const database = await createTestDatabase({
    schema: 'apps',
    migrate: async (url) => {
      const service = createAppsService(readAppsConfig({ DATABASE_URL: url, SECRET_KEY, LOG_LEVEL: 'silent' }));
      await service.migrate();
      await service.stop();
    },
  });
  client = connect(database.url);
  const stopService = stop;
  stop = async () => {
    await stopService();
    await database.drop();
  };
});
afterAll(() => stop());

test('a new application has the defaults and both keys', async () => {
  const accountId = randomUUID();
  const { applicationId } = await client.createApplication({ accountId, name: '  My application ' });
  const { applications } = await client.listApplications({ accountId });
  expect(applications).toHaveLength(1);
  expect(applications[0]).toMatchObject({ id: applicationId, name: 'My application' });
  expect(applications[0]?.runtimeKeys?.socketKey).toMatch(/^lk_sock_[0-9A-Za-z]{32}$/);
  await client.updateApplicationSetting({
    accountId,
    applicationId,
    field: 'version',
    value: { case: 'stringValue', value: ' 2.0 ' },
  });
  const { settings } = await client.getApplicationSettings({ accountId, applicationId });
  expect(settings).toMatchObject({ version: '2.0' });
  const rotations = await Promise.allSettled(
    Array.from({ length: 12 }, () => client.rotateRuntimeKey({ accountId, applicationId, type: 1 })),
  );
  expect(rotations.filter((r) => r.status === 'fulfilled')).toHaveLength(2);
  await client.deleteApplication({ accountId, applicationId });
  const err = await client.getApplicationSettings({ accountId, applicationId }).catch((e) => fromConnectError(e));
  expect(err).toMatchObject({ reason: 'application_not_found' });
});
