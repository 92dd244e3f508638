import { randomUUID } from 'node:crypto';
import { type CallOptions, type Client, createClient } from '@connectrpc/connect';
import { createLogger } from '@latchkey/kit/log/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { ApplicationService, type RuntimeKeys } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { createTestDatabase } from '@latchkey/testkit/database';
import { createTestClock, type TestClock } from '@latchkey/testkit/test-clock';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { readAppsConfig } from '../config.ts';
import { type AppsOverrides, type AppsService, createAppsService } from '../service.ts';

export const SECRET_KEY = 'test-secret-key-of-32-characters!';

/** White space that trimming removes. */
export const SPACES = ' \t\r\n\v\f\u00a0\u2003\u2028\u3000\ufeff';

/** One code point outside the basic plane: two UTF-16 units, four bytes. */
export const ASTRAL = '\u{1f511}';

/** Texts that PostgreSQL cannot store. */
export const UNSTORABLE = ['nul: \0abc', 'high \ud83d half', 'low \udd11 half'];

/** Names an application of an account. */
export interface OwnedRef {
  readonly accountId: string;
  readonly applicationId: string;
}

export interface InstanceOptions extends AppsOverrides {
  /** Environment variables beside the required ones. */
  readonly env?: Readonly<Record<string, string>>;
}

/** One instance of the service and a client that calls it. */
export interface AppsInstance {
  readonly service: AppsService;
  readonly client: Client<typeof ApplicationService>;
}

/** The service on a database of its own. */
export interface TestApps extends AppsInstance {
  readonly clock: TestClock;
  readonly url: string;
  /** The database with the service's schema as search path. */
  readonly db: pg.Pool;
  createOwned(name?: string): Promise<OwnedRef>;
  set(ref: OwnedRef, field: string, value: boolean | string, options?: CallOptions): Promise<unknown>;
  keysOf(ref: OwnedRef): Promise<RuntimeKeys>;
  /** Another instance on the same database; it stops with the first. */
  connect(options?: InstanceOptions): AppsInstance;
  stop(): Promise<void>;
}

/** No Redis listens here: an instance that was not started delivers no events. */
const NO_REDIS = 'redis://127.0.0.1:1';

export function createInstance(url: string, { env, ...overrides }: InstanceOptions = {}): AppsInstance {
  const { logger = createLogger('apps', 'silent') } = overrides;
  const config = readAppsConfig({ DATABASE_URL: url, REDIS_URL: NO_REDIS, SECRET_KEY, ...env });
  const service = createAppsService(config, { ...overrides, logger });
  return { service, client: createClient(ApplicationService, createDirectTransport(service.routes, logger)) };
}

/** A pool on the service's schema. */
export function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, options: '-c search_path=apps', max: 4 });
  // Dropping the database may cut off connections that end() is still closing.
  pool.on('error', () => {});
  return pool;
}

async function migrateApps(url: string): Promise<string[]> {
  const { service } = createInstance(url);
  return service.migrate().finally(service.stop);
}

/** The service on a database of its own, not started, with a clock that the test moves. */
export async function startTestApps(): Promise<TestApps> {
  const database = await createTestDatabase({ schema: 'apps', migrate: migrateApps });
  const clock = createTestClock();
  const db = openPool(database.url);
  const instances: AppsInstance[] = [];
  const connect = (options: InstanceOptions = {}) => {
    const instance = createInstance(database.url, { clock: clock.now, ...options });
    instances.push(instance);
    return instance;
  };
  const { service, client } = connect();
  return {
    service,
    client,
    clock,
    url: database.url,
    db,
    connect,
    async createOwned(name = 'Application') {
      const accountId = randomUUID();
      const { applicationId } = await client.createApplication({ accountId, name });
      return { accountId, applicationId };
    },
    set: (ref, field, value, options) => client.updateApplicationSetting({ ...ref, field, value: toValue(value) }, options),
    async keysOf({ accountId, applicationId }) {
      const { applications } = await client.listApplications({ accountId, filter: { applicationIds: [applicationId] } });
      return applications[0]?.runtimeKeys as RuntimeKeys;
    },
    async stop() {
      await Promise.all([db.end(), ...instances.map((instance) => instance.service.stop())]);
      await database.drop();
    },
  };
}

/** A setting's value as a call has it. */
export function toValue(value: boolean | string) {
  return typeof value === 'string' ? { case: 'stringValue' as const, value } : { case: 'boolValue' as const, value };
}

/** The service for all tests of a file. */
export function useTestApps(): TestApps {
  const apps = {} as TestApps;
  beforeAll(async () => void Object.assign(apps, await startTestApps()));
  afterAll(() => apps.stop());
  return apps;
}

/** The numbers from one to another. */
export function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
