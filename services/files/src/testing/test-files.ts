import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { migrate } from '@latchkey/kit/database/migrate';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { UploadService } from '@latchkey/proto/latchkey/files/v1/upload_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { createTestDatabase } from '@latchkey/testkit/postgres/database';
import { createTestClock } from '@latchkey/testkit/values/test-clock';
import pg from 'pg';
import { afterAll, beforeAll, expect } from 'vitest';
import { readFilesConfig } from '../config.ts';
import { type FilesContext, openContext, SCHEMA } from '../context.ts';
import { migrations } from '../db/migrations.ts';
import { filesRoutes } from '../files.rpc.ts';
import type { FileLimits } from '../limits.ts';
import type { ObjectStore } from '../storage/object-store/object-store.ts';
import { createFakeApps, type FakeApps } from './fake-apps.ts';

export const SECRET_KEY = 'test-secret-key-of-32-characters!';

export interface InstanceOptions {
  readonly clock?: () => Date;
  readonly logger?: Logger;
  readonly env?: Readonly<Record<string, string>>;
  readonly limits?: Partial<FileLimits>;
  /** Another way to the same database. */
  readonly url?: string;
  /** Replaces methods of the disk store, to make it fail or wait. */
  readonly changeStore?: ((store: ObjectStore) => Partial<ObjectStore>) | undefined;
}

/** One instance of the service and a client that calls it. */
export type FilesInstance = ReturnType<typeof createInstance>;

export type TestFiles = Awaited<ReturnType<typeof startTestFiles>>;

/** Brings a database to the schema of the service. */
export const migrateFiles = (url: string): Promise<string[]> => migrate(url, SCHEMA, migrations);

/** The service for all tests of a file. Its members are there once the tests run. */
export function useTestFiles(): TestFiles {
  const files = {} as TestFiles;
  beforeAll(async () => void Object.assign(files, await startTestFiles()));
  afterAll(() => files.stop());
  return files;
}

/**
 * The service on its own database and folder, beside a fake apps service; its clock stands until
 * moved.
 */
export async function startTestFiles() {
  const database = await createTestDatabase({ schema: 'files', migrate: migrateFiles });
  const objectsDir = await mkdtemp(join(tmpdir(), 'latchkey-objects-'));
  const apps = createFakeApps();
  const clock = createTestClock();
  const db = new pg.Pool({ connectionString: database.url, options: '-c search_path=files', max: 4 });
  // end() is done before the connections are closed, which dropping the database may cut off.
  db.on('error', () => {});
  const instances: FilesInstance[] = [];
  const connect = (options: InstanceOptions = {}) => {
    const instance = createInstance({ url: options.url ?? database.url, objectsDir, apps }, { clock: clock.now, ...options });
    instances.push(instance);
    return instance;
  };
  return {
    ...connect(),
    apps,
    clock,
    url: database.url,
    /** Folder of the disk store. */
    objectsDir,
    /** The database itself, with the service's schema as search path. */
    db,
    /** Another instance on the same database and folder; it stops with the first. */
    connect,
    createOwned: apps.createOwned,
    async stop() {
      await Promise.all([db.end(), ...instances.map((instance) => instance.stop())]);
      await database.drop();
      await rm(objectsDir, { recursive: true, force: true });
    },
  };
}

interface Surroundings {
  readonly url: string;
  readonly objectsDir: string;
  readonly apps: FakeApps;
}

function createInstance({ url, objectsDir, apps }: Surroundings, options: InstanceOptions) {
  const logger = options.logger ?? createLogger('files', 'silent');
  const config = readFilesConfig({
    DATABASE_URL: url,
    REDIS_URL: 'redis://localhost:1',
    SECRET_KEY,
    OBJECTS_DIR: objectsDir,
    ...options.env,
  });
  const { ctx: opened, close } = openContext(
    config,
    { appsTransport: apps.transport, identityTransport: apps.transport },
    logger,
    options.clock,
  );
  const limits = { ...opened.limits, ...options.limits };
  const ctx: FilesContext = { ...opened, limits, store: { ...opened.store, ...options.changeStore?.(opened.store) } };
  const routes = filesRoutes(ctx);
  const transport = createDirectTransport(routes, logger);
  return {
    routes,
    client: createClient(FileService, transport),
    uploads: createClient(UploadService, transport),
    ctx,
    stop: async () => {
      await ctx.processLock.stop();
      await close();
    },
  };
}

/** Has an instance hold its lock, as a process does until it has ended. */
export async function holdProcessLock({ processLock }: Pick<FilesContext, 'processLock'>): Promise<void> {
  processLock.start();
  await eventually(() => expect(processLock.id).not.toBeNull(), { timeoutMs: 15_000 });
}
