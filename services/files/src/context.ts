import type { KeyObject } from 'node:crypto';
import type { Transport } from '@connectrpc/connect';
import { deriveResultKey } from '@latchkey/audit/idempotency';
import { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import { createDatabase } from '@latchkey/kit/database/database';
import { createProcessLock, type ProcessLock } from '@latchkey/kit/database/process-lock';
import type { Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import type { Kysely } from 'kysely';
import type pg from 'pg';
import { type AvatarLimits, createAvatarLimits } from './avatars/avatar-limits.ts';
import type { AvatarWorkerConfig, FilesConfig } from './config.ts';
import type { FilesDatabase } from './db/schema.ts';
import { createFileLimits, type FileLimits } from './limits.ts';
import {
  createDetachFile,
  createFindOwned,
  createUsageCounts,
  type DetachFile,
} from './storage/application/application.client.ts';
import type { FindOwnedApplications } from './storage/application/owned-application.ts';
import { createDownloadUrls, type DownloadUrls } from './storage/download/download-url.ts';
import { createObjectStore } from './storage/object-store/create-object-store.ts';
import type { ObjectStore } from './storage/object-store/object-store.ts';

export const SCHEMA = 'files';

/** Readings of files for releases: a pure Ed25519 signature needs all bytes in memory. */
const INSPECTIONS = { concurrency: 1, concurrencyPerKey: 1, size: 64, sizePerKey: 8, waitMs: DEADLINES_MS.inspectionQueue };

export interface StorageContext {
  readonly db: Kysely<FilesDatabase>;
  readonly pool: pg.Pool;
  readonly store: ObjectStore;
  readonly avatarLimits: AvatarLimits;
  readonly logger: Logger;
}

export interface FilesContext extends StorageContext {
  readonly findOwned: FindOwnedApplications;
  readonly detachFile: DetachFile;
  readonly usage: ReturnType<typeof createUsageCounts>;
  readonly inspections: CallQueue;
  /** Named in the rows of running uploads: repeated requests see by it that this process ended. */
  readonly processLock: ProcessLock;
  readonly downloadUrls: DownloadUrls;
  /** Seals kept results of calls with an idempotency key. */
  readonly resultKey: KeyObject;
  readonly limits: FileLimits;
  readonly clock: () => Date;
}

/** Opens the database and the object store. Nothing is connected before the first use. */
export function openStorage(config: AvatarWorkerConfig, logger: Logger): { ctx: StorageContext; close(): Promise<void> } {
  const { DATABASE_URL: url, DATABASE_POOL_MAX: poolMax } = config;
  const database = createDatabase<FilesDatabase>({ url, schema: SCHEMA, poolMax, logger });
  const store = createObjectStore(config);
  const close = () => stopAll(store.close, () => database.close());
  return { ctx: { db: database.db, pool: database.pool, store, avatarLimits: createAvatarLimits(config), logger }, close };
}

export function openContext(config: FilesConfig, appsTransport: Transport, logger: Logger, clock = () => new Date()) {
  const { ctx: storage, close } = openStorage(config, logger);
  const ctx: FilesContext = {
    ...storage,
    findOwned: createFindOwned(appsTransport),
    detachFile: createDetachFile(appsTransport),
    usage: createUsageCounts(appsTransport, logger),
    inspections: new CallQueue(INSPECTIONS),
    processLock: createProcessLock(config.DATABASE_URL, logger),
    downloadUrls: createDownloadUrls({ secretKey: config.SECRET_KEY, publicUrl: config.PUBLIC_URL }),
    resultKey: deriveResultKey(config.SECRET_KEY),
    limits: createFileLimits(config),
    clock,
  };
  return { ctx, close };
}
