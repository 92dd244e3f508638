import type { Transport } from '@connectrpc/connect';
import { deriveResultKey } from '@latchkey/audit/idempotency';
import { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import { createDatabase } from '@latchkey/kit/database/database';
import { createProcessLock } from '@latchkey/kit/database/process-lock';
import type { Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { createAvatarLimits } from './avatars/avatar-quota.ts';
import { createSetAvatar } from './avatars/set-avatar.client.ts';
import type { AvatarWorkerConfig, FilesConfig } from './config.ts';
import { createFileLimits } from './limits.ts';
import { createDetachFile, createFindOwned, createUsageCounts } from './storage/application/application.client.ts';
import { createDownloadUrls } from './storage/download/download-url.ts';
import { createObjectStore } from './storage/object-store/create-object-store.ts';

export const SCHEMA = 'files';

/** Readings of files for releases: a pure Ed25519 signature needs all bytes in memory. */
const INSPECTIONS = { concurrency: 1, concurrencyPerKey: 1, size: 64, sizePerKey: 8, waitMs: DEADLINES_MS.inspectionQueue };

export type StorageContext = Readonly<ReturnType<typeof openStorage>['ctx']>;
export type FilesContext = Readonly<ReturnType<typeof openContext>['ctx']>;

/** Opens the database and the object store. Nothing is connected before the first use. */
export function openStorage(config: AvatarWorkerConfig, logger: Logger) {
  const { DATABASE_URL: url, DATABASE_POOL_MAX: poolMax } = config;
  const database = createDatabase<unknown>({ url, schema: SCHEMA, poolMax, logger });
  const store = createObjectStore(config);
  const close = () => stopAll(store.close, () => database.close());
  const ctx = { db: database.db, pool: database.pool, store, avatarLimits: createAvatarLimits(config), logger };
  return { ctx, close };
}

/** Transports to the other services. */
export type Peers = Readonly<Record<'appsTransport' | 'identityTransport', Transport>>;

export function openContext(config: FilesConfig, peers: Peers, logger: Logger, clock = () => new Date()) {
  const { appsTransport, identityTransport } = peers;
  const { ctx: storage, close } = openStorage(config, logger);
  const ctx = {
    ...storage,
    findOwned: createFindOwned(appsTransport),
    detachFile: createDetachFile(appsTransport),
    setAvatar: createSetAvatar(identityTransport),
    usage: createUsageCounts(appsTransport, logger),
    inspections: new CallQueue(INSPECTIONS),
    /** Named in the rows of running uploads: repeated requests see by it that this process ended. */
    processLock: createProcessLock(config.DATABASE_URL, logger),
    downloadUrls: createDownloadUrls({ secretKey: config.SECRET_KEY, publicUrl: config.PUBLIC_URL }),
    /** Seals kept results of calls with an idempotency key. */
    resultKey: deriveResultKey(config.SECRET_KEY),
    limits: createFileLimits(config),
    clock,
  };
  return { ctx, close };
}
