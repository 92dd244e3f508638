import { defineErrors, toConnectError } from '@latchkey/kit/errors/errors';
import { createLogger } from '@latchkey/kit/log/logger';
import { createFailFastRedis, type Redis } from '@latchkey/kit/redis/redis';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { expect, it, onTestFinished } from 'vitest';
import { startTestGateway } from './testing/test-gateway.ts';

const { api_key_revoked } = defineErrors({
  api_key_revoked: { kind: 'unauthenticated', code: 'api_key_revoked', message: 'Revoked' },
});

/** Ends the gateway's connection to a numbered database, as the loss of Redis does. */
async function endConnection(redis: Redis, database: string): Promise<void> {
  const clients = String(await redis.client('LIST')).split('\n');
  const own = clients.find((line) => line.includes(' name=latchkey-gateway ') && line.includes(` db=${database} `));
  await redis.client('KILL', 'ID', /^id=(\d+)/.exec(own ?? '')?.[1] ?? '');
}

it('starts without a warning of the process', async () => {
  const { url: redisUrl } = await testRedis();
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => void warnings.push(message);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const gateway = await startTestGateway({ redisUrl });
  onTestFinished(() => gateway.service.stop());
  expect(warnings).toEqual([]);
});

it('rejects a revoked key after Redis was lost and restored with old epochs', async () => {
  const { url: redisUrl } = await testRedis();
  const redis = createFailFastRedis(redisUrl, createLogger('test', 'silent'), { commandTimeout: 5_000 });
  await redis.connect();
  const asked: string[] = [];
  const revoked = new Set<string>();
  const gateway = await startTestGateway({
    redisUrl,
    applications: { listApplications: async () => ({ applications: [] }) },
    authentication: {
      authenticate: async ({ credential: { value: key = '' } }) => {
        asked.push(key);
        if (revoked.has(key)) throw toConnectError(api_key_revoked());
        const scopes = ['applications:read'];
        const principal = { kind: PrincipalKind.API_KEY, accountId: 'account', credentialId: key, scopes, allApplications: true };
        return { principal, epochKey: `epoch:${key}`, epoch: 'old' };
      },
    },
  });
  onTestFinished(async () => {
    await gateway.service.stop();
    redis.disconnect();
  });
  const use = async (key: string) => {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${gateway.baseUrl}/api/v1/panel/get-applications`, { headers });
    return `${response.status} ${((await response.json()) as { code?: string }).code ?? ''}`.trim();
  };
  /** True if the gateway remembers the key, and Redis confirms its epoch. */
  const isRemembered = async (key: string) => {
    const before = asked.length;
    expect(await use(key)).toBe('200');
    return asked.length === before;
  };
  await redis.mset('epoch:one', 'old', 'epoch:other', 'old');
  await eventually(() => isRemembered('one'));

  revoked.add('one');
  await redis.del('epoch:one');
  await endConnection(redis, new URL(redisUrl).pathname.slice(1));
  await redis.set('epoch:one', 'old');
  await eventually(() => isRemembered('other'));
  expect(await use('one')).toBe('401 api_key_revoked');
});
