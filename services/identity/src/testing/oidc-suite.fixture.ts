import { createTestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll } from 'vitest';
import { accountsCalls } from './accounts-call.ts';
import { migrateIdentity, startTestIdentity } from './identity.fixture.ts';
import { startTestIssuer } from './issuer.fixture.ts';

/** What the tests of a file have of OpenID Connect until they are through: an issuer, a service that knows it, and the operator's commands beside. */
export async function openTestOidc() {
  const issuer = await startTestIssuer();
  const database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  const servers = { databaseUrl: database.url, redisUrl: (await testRedis()).url };
  const identity = await startTestIdentity(servers);
  const instance = await identity.connect({ env: issuer.env() });
  afterAll(async () => {
    await identity.stop();
    await database.drop();
    await issuer.stop();
  });
  return { issuer, identity, instance, call: accountsCalls(servers) };
}
