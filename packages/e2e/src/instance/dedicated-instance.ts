import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { inject } from 'vitest';
import { Api } from '../client/api.ts';
import { type Instance, startInstance } from './instance.ts';
import './shared-instance.ts';

export interface DedicatedInstanceOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Stands in for the servers of the run, such as a proxy before them. */
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
}

/** An instance of a test's own, with a client that has no credential. */
export interface DedicatedInstance extends Instance {
  readonly api: Api;
}

/** Starts an instance in the shape under test, with its own database and Redis. */
export async function startDedicatedInstance(options: DedicatedInstanceOptions = {}): Promise<DedicatedInstance> {
  const { shape } = inject('latchkeyInstance');
  const database = options.databaseUrl === undefined ? await createEmptyTestDatabase() : undefined;
  const databaseUrl = options.databaseUrl ?? database?.url ?? '';
  const redisUrl = options.redisUrl ?? (await testRedis()).url;
  const instance = await startInstance({ shape, databaseUrl, redisUrl, ...(options.env && { env: options.env }) });
  const stop = async () => {
    await instance.stop();
    await database?.drop();
  };
  return { ...instance, api: new Api(instance.baseUrl), stop };
}
