import { randomUUID } from 'node:crypto';
import { type CallOptions, createClient } from '@connectrpc/connect';
import { createLogger } from '@latchkey/kit/log/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { ApplicationService, type RuntimeKeys } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ReleaseService } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { createEmptyTestDatabase, createTestDatabase } from '@latchkey/testkit/postgres/database';
import { createTestClock } from '@latchkey/testkit/values/test-clock';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { readAppsConfig } from '../config.ts';
import { type AppsOverrides, createAppsService } from '../service.ts';

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
  /** Environment variables besides the required ones. */
  readonly env?: Readonly<Record<string, string>>;
}

/** One instance of the service and a client that calls it. */
export type AppsInstance = ReturnType<typeof createInstance>;

/** Required settings. No Redis listens there: only a started instance needs one. */
const REQUIRED = { REDIS_URL: 'redis://127.0.0.1:1', SECRET_KEY: 'test-secret-key-of-32-characters!' };

function createInstance(url: string, { env, ...overrides }: InstanceOptions = {}) {
  const { logger = createLogger('apps', 'silent') } = overrides;
  const config = readAppsConfig({ DATABASE_URL: url, ...REQUIRED, ...env });
  const service = createAppsService(config, { ...overrides, logger });
  const transport = createDirectTransport(service.routes, logger);
  return { service, client: createClient(ApplicationService, transport), releases: createClient(ReleaseService, transport) };
}

async function migrateApps(url: string): Promise<string[]> {
  const { service } = createInstance(url);
  return service.migrate().finally(service.stop);
}

export type TestApps = Awaited<ReturnType<typeof startTestApps>>;

/**
 * The service on its own database, not started, with a clock that the test moves.
 *
 * @param isMigrated whether the database has the schema
 */
export async function startTestApps(isMigrated = true) {
  const create = () => createTestDatabase({ schema: 'apps', migrate: migrateApps });
  const database = await (isMigrated ? create() : createEmptyTestDatabase());
  const { url } = database;
  const clock = createTestClock();
  const db = new pg.Pool({ connectionString: url, options: '-c search_path=apps', max: 4 });
  // Dropping the database may cut off connections that end() is still closing.
  db.on('error', () => {});
  const instances: AppsInstance[] = [];
  const connect = (options: InstanceOptions = {}) => {
    const instance = createInstance(url, { clock: clock.now, ...options });
    instances.push(instance);
    return instance;
  };
  const { service, client, releases } = connect();
  return {
    service,
    client,
    releases,
    clock,
    url,
    /** The database with the service's schema as search path. */
    db,
    /** The database as the service's jobs have it. */
    kysely: new Kysely<unknown>({ dialect: new PostgresDialect({ pool: db }) }),
    /** Another instance on the same database; it stops with the first. */
    connect,
    async createOwned(name = 'Application'): Promise<OwnedRef> {
      const accountId = randomUUID();
      const { applicationId } = await client.createApplication({ accountId, name });
      return { accountId, applicationId };
    },
    set: (ref: OwnedRef, field: string, value: boolean | string, options?: CallOptions) =>
      client.updateApplicationSetting({ ...ref, field, value: toValue(value) }, options),
    async keysOf({ accountId, applicationId }: OwnedRef): Promise<RuntimeKeys> {
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

export function useTestApps(): TestApps {
  const apps = {} as TestApps;
  beforeAll(async () => void Object.assign(apps, await startTestApps()));
  afterAll(() => apps.stop());
  return apps;
}

export const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
