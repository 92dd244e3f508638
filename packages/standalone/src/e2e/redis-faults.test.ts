import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type EmbeddedRedis, startRedis } from '@latchkey/embedded/redis';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createApplication, createKey, type Owner, signUp, unique } from '../testing/caller.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';

/** Promises R9: with Redis gone or frozen, reads and writes go on, limits are kept by each process, and a revocation holds. */
const CACHE_DIR = fileURLToPath(new URL('../../../../node_modules/.cache/latchkey', import.meta.url));
const LIMIT = 40;

let dataDir: string;
let redis: EmbeddedRedis;
let instance: OwnInstance;
let owner: Owner;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'latchkey-e2e-redis-'));
  await chmod(dataDir, 0o711);
  redis = await start();
  instance = await startOwnInstance({ redisUrl: redis.url, env: { RATE_LIMIT_PRINCIPAL_PER_MINUTE: String(LIMIT) } });
  owner = await signUp(instance.api);
});
afterAll(async () => {
  await instance.stop();
  await redis.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const start = (address?: EmbeddedRedis) =>
  startRedis({ dataDir, cacheDir: CACHE_DIR, removeDirWhenOrphaned: dataDir, ...(address && { address }) });

const ways = [
  {
    what: 'frozen',
    breakIt: async () => void process.kill(redis.pid, 'SIGSTOP'),
    mend: async () => void process.kill(redis.pid, 'SIGCONT'),
  },
  {
    what: 'gone',
    breakIt: () => redis.stop(),
    mend: async () => {
      redis = await start(redis);
    },
  },
];

describe.each(ways)('with Redis $what', ({ breakIt, mend }) => {
  let broken = false;
  const breakRedis = async () => {
    broken = true;
    await breakIt();
  };
  const mendRedis = async () => {
    if (broken) await mend();
    broken = false;
  };
  afterEach(mendRedis);

  const read = (api: { get: Owner['session']['get'] }) => api.get('/api/v1/panel/get-applications');

  it('reads and writes of keys, sessions and newcomers go on, each soon', async () => {
    const known = await createKey(owner);
    await read(known.api);
    await breakRedis();
    const steps: Array<[string, () => Promise<{ status: number }>]> = [
      ['a known key reads', () => read(known.api)],
      ['a known key writes', () => known.api.post('/api/v1/panel/create-application', { name: unique('app-') })],
      ['a session reads', () => owner.session.get('/api/v1/panel/api-keys')],
      ['a new account', async () => (await signUp(instance.api)).session.get('/api/v1/auth/session')],
      ['a new key', async () => read((await createKey(owner)).api)],
      ['an unknown route', async () => ({ status: (await instance.api.get('/nowhere')).status === 404 ? 200 : 0 })],
    ];
    for (const [what, step] of steps) {
      const startedAt = performance.now();
      expect((await step()).status, what).toBe(200);
      expect(performance.now() - startedAt, what).toBeLessThan(2_000);
    }
  });

  it('a limit still holds, and requests are not let in by it twice over', async () => {
    const { api } = await createKey(owner);
    await breakRedis();
    const answers = await Promise.all(Array.from({ length: LIMIT + 10 }, () => read(api)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(LIMIT);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(10);
  });

  it('a revoked key is refused on the next request, and still when Redis is back', async () => {
    const key = await createKey(owner);
    for (let i = 0; i < 3; i += 1) expect((await read(key.api)).status).toBe(200);
    await breakRedis();
    expect((await owner.session.post(`/api/v1/panel/api-keys/${key.id}/revoke`)).status).toBe(200);
    expect((await read(key.api)).code).toBe('api_key_revoked');
    await mendRedis();
    for (let i = 0; i < 5; i += 1) expect((await read(key.api)).code).toBe('api_key_revoked');
  });

  it('a session that was signed out of is refused on the next request', async () => {
    const { session } = await signUp(instance.api);
    await session.get('/api/v1/auth/session');
    await breakRedis();
    expect((await session.post('/api/v1/auth/sign-out')).status).toBe(200);
    expect((await session.get('/api/v1/auth/session')).code).toBe('unauth');
    await mendRedis();
    expect((await session.get('/api/v1/auth/session')).code).toBe('unauth');
  });

  it('limits are shared again some seconds after it is back', async () => {
    await breakRedis();
    const applicationId = await createApplication(owner.session);
    await mendRedis();
    const { Redis } = await import('ioredis');
    const client = new Redis(redis.url, { maxRetriesPerRequest: 1 });
    const { api, id } = await createKey(owner);
    await eventually(
      async () => {
        await api.get('/api/v1/panel/get-application-settings', { applicationId });
        return (await client.exists(`latchkey:limit:principal:${id}`)) === 1;
      },
      { timeoutMs: 10_000, intervalMs: 300 },
    ).finally(() => client.disconnect());
  });
});
