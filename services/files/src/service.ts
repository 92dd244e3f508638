import type { Transport } from '@connectrpc/connect';
import { publishChanges } from '@latchkey/audit/announce';
import { withIdempotency } from '@latchkey/audit/idempotency';
import { createAuditSweeper } from '@latchkey/audit/retention';
import { followDeletions } from '@latchkey/deletions/follow-deletions';
import { createDataService, type DataServiceParts } from '@latchkey/kit/database/data-service';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import type { RpcService } from '@latchkey/kit/process/run-service';
import { createChangePublisher } from '@latchkey/kit/redis/account-changes';
import { redisUrls } from '@latchkey/kit/redis/redis-url';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { createSweeper, type Sweep } from '@latchkey/kit/sweeper/sweeper';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { type Avatars, createAvatars, createAvatarWorker } from './avatars/avatar.queue.ts';
import { avatarRpc } from './avatars/avatar.rpc.ts';
import { DECODE_MS } from './avatars/avatar-limits.ts';
import { createDeletedAccountsSweep } from './avatars/deleted-accounts.consumer.ts';
import type { AvatarWorkerConfig, FilesConfig } from './config.ts';
import { type FilesContext, openContext, openStorage, SCHEMA } from './context.ts';
import { createDataPath, dataPathRoutes } from './data-path.ts';
import { migrations } from './db/migrations.ts';
import { filesRoutes } from './files.rpc.ts';
import { selectHalfDeleted, selectUnmarked } from './storage/application/deleted-application.store.ts';
import { cleanUpApplication, EVENT_LOG_HOURS, purgeTombstones } from './storage/application/deleted-application.ts';
import { sweepObjectDeletions } from './storage/object-deletion/object-deletion.ts';
import { checkStore } from './storage/object-store/check-store.ts';
import { reportUnknownObjects } from './storage/reconciler/unknown-objects.ts';
import { sweepUploads } from './storage/resumable-upload/resumable-upload.ts';
import { sweepExpiredUploads } from './storage/upload/receive-upload.ts';

/** Time for what is under way besides uploads, calls and decoding when a service stops. */
const STOP_SLACK_MS = 30_000;

/** Lists the whole store each time: one request per 1,000 objects. */
const RECONCILE_INTERVAL_MS = 3_600_000;

const HALF_DELETED_MAX = 100;

export function createFilesService(
  config: FilesConfig,
  deps: { appsTransport: Transport; identityTransport: Transport; logger?: Logger; clock?: () => Date },
) {
  const logger = deps.logger ?? createLogger('files', config.LOG_LEVEL);
  const { ctx, close } = openContext(config, deps.appsTransport, logger, deps.clock);
  const avatars = createAvatars(ctx, toQueue(config, deps.identityTransport), config.AVATAR_WORKER);
  const changes = createChangePublisher(redisUrls(config).events, logger, 'latchkey-files-changes');
  publishChanges(ctx.db, changes.publish);
  const dataPath = createDataPath(ctx, avatars.receive);
  const service = createDataService({
    databaseUrl: config.DATABASE_URL,
    schema: SCHEMA,
    pool: ctx.pool,
    migrations,
    logger,
    routes: [
      ...filesRoutes(ctx),
      withIdempotency(rpcRoute(AvatarService, avatarRpc(ctx, avatars)), { sealingKey: ctx.resultKey }),
    ],
    prepare: () => checkStore(ctx, config),
    background: [...createSweepers(ctx, avatars, config, deps), ctx.processLock, ctx.usage, avatars, changes],
    close,
  });
  return {
    name: 'files' as const,
    ...service,
    httpRoutes: dataPathRoutes(dataPath),
    dataPath,
    stopTimeoutMs: Math.max(ctx.limits.uploadDeadlineMs, DEADLINES_MS.longest) + STOP_SLACK_MS,
  };
}

/**
 * Composes the avatar worker as a separate process. It decodes images away from the stored files,
 * and does not hold the key that signs download URLs.
 */
export function createAvatarWorkerService(config: AvatarWorkerConfig, identityTransport: Transport): RpcService {
  const logger = createLogger('avatar-worker', config.LOG_LEVEL);
  const { ctx, close } = openStorage(config, logger);
  const service = createDataService({
    databaseUrl: config.DATABASE_URL,
    schema: SCHEMA,
    pool: ctx.pool,
    migrations,
    logger,
    routes: [],
    background: [createAvatarWorker(ctx, toQueue(config, identityTransport))],
    close,
  });
  return { ...service, stopTimeoutMs: DECODE_MS + STOP_SLACK_MS };
}

const toQueue = (config: AvatarWorkerConfig, identityTransport: Transport) => ({
  redisUrl: redisUrls(config).queues,
  identityTransport,
});

function createSweepers(
  ctx: FilesContext,
  avatars: Avatars,
  config: FilesConfig,
  { appsTransport, identityTransport }: { readonly appsTransport: Transport; readonly identityTransport: Transport },
): DataServiceParts['background'] {
  const { pool, logger, limits } = ctx;
  const every = (intervalMs: number, sweeps: Record<string, Sweep>) => createSweeper({ intervalMs, logger, sweeps });
  // Alone, as a deletion wakes it, and so that nothing else delays it.
  const objects = every(limits.sweepIntervalMs, { objects: (signal) => sweepObjectDeletions(ctx, signal) });
  const deletions = followDeletions({
    ...{ service: 'files', redisUrl: redisUrls(config).queues, appsTransport, clock: ctx.clock, logger },
    firstReachMs: EVENT_LOG_HOURS * 3_600_000,
    selectUnfinished: () => selectHalfDeleted(ctx.db, HALF_DELETED_MAX),
    selectPending: (deleted) => selectUnmarked(ctx.db, deleted),
    forget: (application) => cleanUpApplication(ctx, application, objects.wake),
  });
  const others = every(limits.sweepIntervalMs, {
    // First: after a start, nothing may serve the files of applications deleted meanwhile for long.
    deleted_applications: deletions.reconcile,
    uploads: (signal) => sweepExpiredUploads(ctx, signal).finally(objects.wake),
    resumable_uploads: () => sweepUploads(ctx),
    avatars: avatars.sweep,
    avatars_of_accounts: createDeletedAccountsSweep(ctx, identityTransport, objects.wake),
    tombstones: (signal) => purgeTombstones(ctx, signal),
  });
  const reconciler = every(RECONCILE_INTERVAL_MS, { unknown_objects: (signal) => reportUnknownObjects(ctx, signal) });
  return [
    objects,
    others,
    reconciler,
    createAuditSweeper({ pool, retentionDays: config.AUDIT_RETENTION_DAYS, logger }),
    deletions.worker,
  ];
}
