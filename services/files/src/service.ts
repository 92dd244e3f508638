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
import { createDeletionFollower } from './application/deleted-application.consumer.ts';
import { purgeTombstones } from './application/deleted-application.ts';
import { avatarRpc } from './avatars/avatar.rpc.ts';
import { createAvatars } from './avatars/avatars.compose.ts';
import { openContext, SCHEMA } from './compose.ts';
import type { FilesConfig } from './config.ts';
import type { FilesContext } from './context.ts';
import { createDataPath, dataPathRoutes, type FilesDataPath } from './data-path.ts';
import { migrations } from './db/migrations/index.ts';
import { fileRpc } from './file/file.rpc.ts';
import { explainBucketRefusal } from './object-store/bucket-refusal.ts';
import { refuseLostStore } from './object-store/lost-store.ts';
import { sweepAbandonedUploads, sweepObjectDeletions } from './sweep/sweep.ts';
import { uploadRpc } from './upload/upload.rpc.ts';

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
    routes: [
      rpcRoute(FileService, { ...uploadRpc(ctx), ...fileRpc(ctx) }),
      rpcRoute(AvatarService, avatarRpc(ctx)),
      auditRoute(ctx.pool),
    ],
    async prepare() {
      await refuseLostStore(ctx.db, config);
      await checkStore(ctx, config);
    },
    background: [sweepObjects, sweepRest, auditSweeper, deletions.worker, avatars],
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

/** Failures of a folder that say nothing of its being the right one: a disk that is full serves and deletes still. */
const PASSING_FAILURES = ['ENOSPC', 'EDQUOT', 'EIO'];

/** A folder or a bucket that can't be used is a wrong setting, and ends the start. A store that is away comes back. */
async function checkStore({ store, logger }: FilesContext, config: FilesConfig): Promise<void> {
  await store.check().catch((err: NodeJS.ErrnoException) => {
    const { code = '' } = err;
    if (config.OBJECT_STORE === 'disk' && !PASSING_FAILURES.includes(code))
      throw new Error(`OBJECTS_DIR ${config.OBJECTS_DIR} can't be used (${code})`);
    const refusal = explainBucketRefusal(err, config);
    if (refusal !== undefined) throw new Error(refusal);
    logger.warn({ err }, 'the object store does not answer');
  });
}
