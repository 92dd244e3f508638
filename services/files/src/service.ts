import type { Transport } from '@connectrpc/connect';
import { auditRoute } from '@latchkey/audit/audit.rpc';
import { createAuditSweeper } from '@latchkey/audit/sweeper';
import { createDataService, type DataService } from '@latchkey/kit/database/data-service';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { createSweeper } from '@latchkey/kit/process/sweeper';
import { DEADLINE_MS_MAX, rpcRoute } from '@latchkey/kit/rpc/route';
import type { HttpRoute } from '@latchkey/kit/rpc/server/http-route';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { avatarRpc } from './avatars/avatar.rpc.ts';
import { createAvatars } from './avatars/avatars.compose.ts';
import { openContext, SCHEMA } from './compose.ts';
import type { FilesConfig } from './config.ts';
import { createDataPath, dataPathRoutes, type FilesDataPath } from './data-path.ts';
import { migrations } from './db/migrations/index.ts';
import { createDeletionFollower } from './storage/application/deleted-application.consumer.ts';
import { purgeTombstones } from './storage/application/deleted-application.ts';
import { fileRpc } from './storage/file/file.rpc.ts';
import { checkStore } from './storage/object-store/check-store.ts';
import { reportUnknownObjects } from './storage/reconciler/unknown-objects.ts';
import { sweepAbandonedUploads, sweepObjectDeletions } from './storage/sweep/sweep.ts';

/** The files service. Redis and the object store may be down. */
export interface FilesService extends DataService {
  readonly name: 'files';
  /** Routes for bodies over HTTP, beside the RPC routes. */
  readonly httpRoutes: readonly HttpRoute[];
  /** The same for callers in this process. */
  readonly dataPath: FilesDataPath;
  /** Longest time that an ordered stop may take, in milliseconds: running uploads may end. */
  readonly stopTimeoutMs: number;
}

/** What the service is composed with. All but the transports has a default. */
export interface FilesDeps {
  /** Reaches the apps service. */
  readonly appsTransport: Transport;
  /** Reaches the identity service. */
  readonly identityTransport: Transport;
  readonly logger?: Logger;
  readonly clock?: () => Date;
}

/** Time for what is under way beside uploads and calls when the service stops, in milliseconds. */
const STOP_SLACK_MS = 30_000;

/** Lists the whole store each time: one request per 1,000 objects. */
const RECONCILE_INTERVAL_MS = 3_600_000;

/** Composes the files service. Nothing is connected before the first call. */
export function createFilesService(config: FilesConfig, deps: FilesDeps): FilesService {
  const logger = deps.logger ?? createLogger('files', config.LOG_LEVEL);
  const { ctx, close } = openContext(config, deps.appsTransport, logger, deps.clock);
  const { identityTransport } = deps;
  const avatars = createAvatars(ctx, { identityTransport, redisUrl: config.REDIS_URL }, config.AVATAR_WORKER);
  const dataPath = createDataPath(ctx, avatars.receive);
  const sweepObjects = createSweeper({
    intervalMs: ctx.limits.sweepIntervalMs,
    logger,
    sweeps: [(signal) => sweepObjectDeletions(ctx, signal)],
  });
  const sources = { redisUrl: config.REDIS_URL, appsTransport: deps.appsTransport };
  const deletions = createDeletionFollower(ctx, sources, sweepObjects.wake);
  const sweepRest = createSweeper({
    intervalMs: ctx.limits.sweepIntervalMs,
    logger,
    sweeps: [
      (signal) => sweepAbandonedUploads(ctx, signal),
      (signal) => avatars.sweep(signal),
      deletions.reconcile,
      () => purgeTombstones(ctx),
    ],
  });
  const reconciler = createSweeper({
    intervalMs: RECONCILE_INTERVAL_MS,
    logger,
    sweeps: [(signal) => reportUnknownObjects(ctx, signal)],
  });
  const auditSweeper = createAuditSweeper({
    pool: ctx.pool,
    retentionDays: config.AUDIT_RETENTION_DAYS,
    logger,
  });
  const service = createDataService({
    databaseUrl: config.DATABASE_URL,
    schema: SCHEMA,
    pool: ctx.pool,
    migrations,
    logger,
    routes: [rpcRoute(FileService, fileRpc(ctx)), rpcRoute(AvatarService, avatarRpc(ctx)), auditRoute(ctx.pool)],
    prepare: () => checkStore(ctx, config),
    background: [sweepObjects, sweepRest, reconciler, auditSweeper, deletions.worker, avatars],
    close,
  });
  return {
    name: 'files',
    ...service,
    httpRoutes: dataPathRoutes(dataPath),
    dataPath,
    stopTimeoutMs: Math.max(ctx.limits.uploadDeadlineMs, DEADLINE_MS_MAX) + STOP_SLACK_MS,
  };
}
