import type { Transport } from '@connectrpc/connect';
import { createDatabase } from '@latchkey/kit/database/database';
import type { Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createAvatarLimits } from './avatars/avatar-limits.ts';
import type { AvatarWorkerConfig, FilesConfig } from './config.ts';
import type { FilesContext } from './context.ts';
import type { FilesDatabase } from './db/schema.ts';
import { createFindOwned } from './storage/application/application.client.ts';
import { createDownloadUrls } from './storage/download/download-url.ts';
import { createObjectStore } from './storage/object-store/create-object-store.ts';
import { MIB } from './storage/upload/usage.ts';

/** The schema that the service has in its database. */
export const SCHEMA = 'files';

/** What the use cases work on, and its end. */
export interface OpenContext<C = FilesContext> {
  readonly ctx: C;
  close(): Promise<void>;
}

/** What the making of avatars has of it. */
type StorageContext = Pick<FilesContext, 'db' | 'pool' | 'store' | 'avatarLimits' | 'logger'>;

/** Opens the database and the object store. Nothing is connected before the first use. */
export function openContext(
  config: FilesConfig,
  appsTransport: Transport,
  logger: Logger,
  clock = () => new Date(),
): OpenContext {
  const { ctx: storage, close } = openStorage(config, logger);
  const ctx: FilesContext = {
    ...storage,
    findOwned: createFindOwned(appsTransport),
    downloadUrls: createDownloadUrls({ secretKey: config.SECRET_KEY, publicUrl: config.PUBLIC_URL }),
    limits: {
      allowanceMib: config.STORAGE_ALLOWANCE_MIB,
      fileCountMax: config.FILE_COUNT_LIMIT,
      byteSizeMax: config.FILE_SIZE_LIMIT_MIB * MIB,
      uploadDeadlineMs: config.UPLOAD_DEADLINE_SECONDS * 1_000,
      uploadLeaseMs: config.UPLOAD_LEASE_SECONDS * 1_000,
      downloadsAtOnce: config.DOWNLOADS_AT_ONCE,
      sweepIntervalMs: config.SWEEP_INTERVAL_SECONDS * 1_000,
    },
    clock,
  };
  return { ctx, close };
}

/** The same for whoever makes avatars only. */
export function openStorage(config: AvatarWorkerConfig, logger: Logger): OpenContext<StorageContext> {
  const database = createDatabase<FilesDatabase>({
    url: config.DATABASE_URL,
    schema: SCHEMA,
    poolMax: config.DATABASE_POOL_MAX,
    logger,
  });
  const store = createObjectStore(config);
  const close = () =>
    stopAll(
      () => store.close(),
      () => database.close(),
    );
  return { ctx: { db: database.db, pool: database.pool, store, avatarLimits: createAvatarLimits(config), logger }, close };
}
