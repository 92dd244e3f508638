import { randomUUID } from 'node:crypto';
import { type Client, createClient } from '@connectrpc/connect';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { createTestDatabase } from '@latchkey/testkit/database';
import { createTestClock, type TestClock } from '@latchkey/testkit/test-clock';
import type pg from 'pg';
import { readAppsConfig } from '../config.ts';
import { type AppsService, createAppsService } from '../service.ts';
import { openPool } from './open-pool.ts';

export const SECRET_KEY = 'test-secret-key-of-32-characters!';

/** Names an application of an account. */
export interface OwnedRef {
  readonly accountId: string;
  readonly applicationId: string;
}

/** What an instance may have otherwise. */
export interface InstanceOptions {
  readonly clock?: () => Date;
  readonly logger?: Logger;
  /** Environment variables beside the ones that are needed. */
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
  /** The database itself, with the service's schema as search path. */
  readonly db: pg.Pool;
  /** Makes an application of a new account. */
  createOwned(name?: string): Promise<OwnedRef>;
  /** Another instance of the service on the same database; it stops with the first. */
  connect(options?: InstanceOptions): AppsInstance;
  stop(): Promise<void>;
}

/** Where no Redis listens: an instance that was not started delivers no events. */
const NO_REDIS = 'redis://127.0.0.1:1';

/** Composes an instance on a database. */
export function createInstance(url: string, options: InstanceOptions = {}): AppsInstance {
  const logger = options.logger ?? createLogger('apps', 'silent');
  const config = readAppsConfig({ DATABASE_URL: url, REDIS_URL: NO_REDIS, SECRET_KEY, ...options.env });
  const service = createAppsService(config, { logger, ...(options.clock && { clock: options.clock }) });
  return { service, client: createClient(ApplicationService, createDirectTransport(service.routes, logger)) };
}

/** Brings a database to the schema of the service. */
export async function migrateApps(url: string): Promise<string[]> {
  const { service } = createInstance(url);
  return service.migrate().finally(service.stop);
}

/**
 * The service on a database of its own, with a clock that stands until it is moved. It answers calls, and is not started: events stay on their
 * way unless a test starts an instance with a Redis.
 */
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
    async stop() {
      await Promise.all([db.end(), ...instances.map((instance) => instance.service.stop())]);
      await database.drop();
    },
  };
}
