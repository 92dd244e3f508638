import type { Transport } from '@connectrpc/connect';
import { auditRoute } from '@latchkey/kit/audit/audit.rpc';
import { createAuditSweeper } from '@latchkey/kit/audit/audit-sweeper';
import { migrate } from '@latchkey/kit/database/migrate';
import { createSchemaCheck } from '@latchkey/kit/database/schema-check';
import { createSchemaGate } from '@latchkey/kit/database/schema-gate';
import { stopAll } from '@latchkey/kit/lifecycle';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import type { PlainRoute } from '@latchkey/kit/rpc/plain-route';
import { DEADLINE_MS_MAX, type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
import { createSweeper } from '@latchkey/kit/sweeper';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { avatarRpc } from './avatar/avatar.rpc.ts';
import { createAvatars } from './avatar/avatars.compose.ts';
import { openContext, SCHEMA } from './compose.ts';
import type { FilesConfig } from './config.ts';
import { createDataPath, dataPathRoutes, type FilesDataPath } from './data-path.ts';
import { migrations } from './db/migrations/index.ts';
import { createListDeleted } from './storage/application/application.client.ts';
import { followApplications, purgeTombstones } from './storage/application/deleted-application.ts';
import { fileRpc } from './storage/file/file.rpc.ts';
import { checkStore } from './storage/object-store/check-store.ts';
import { reportUnknownObjects } from './storage/reconciler/unknown-objects.ts';
import { sweepAbandonedUploads, sweepObjectDeletions } from './storage/sweep/sweep.ts';

/** The service, composed and not yet started. */
export interface FilesService {
  readonly name: 'files';
  readonly logger: Logger;
  readonly routes: readonly RpcRoute[];
  /** What answers bodies over HTTP, beside the RPC routes. */
  readonly plainRoutes: readonly PlainRoute[];
  /** The same for whoever is in this process. */
  readonly dataPath: FilesDataPath;
  /** Longest time that an ordered stop may take, in milliseconds: running uploads are let end. */
  readonly stopTimeoutMs: number;
  /** Brings the schema up to date; returns the names of the migrations applied. */
  migrate(): Promise<string[]>;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Rejects without the database or its present schema. Redis and the object store may be away. */
  checkReady(): Promise<void>;
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
  const listDeleted = createListDeleted(deps.appsTransport);
  const deletions = followApplications(ctx, { redisUrl: config.REDIS_URL, listDeleted }, sweepObjects.wake);
  const sweepRest = createSweeper({
    intervalMs: ctx.limits.sweepIntervalMs,
    logger,
    sweeps: [
      (signal) => sweepAbandonedUploads(ctx, signal),
      (signal) => avatars.sweep(signal),
      (signal) => deletions.reconcile(signal),
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
    entriesPerDay: config.AUDIT_ENTRIES_PER_DAY,
    logger,
  });
  const gate = createSchemaGate(ctx.pool, migrations, logger);
  return {
    name: 'files',
    logger,
    routes: [rpcRoute(FileService, fileRpc(ctx)), rpcRoute(AvatarService, avatarRpc(ctx)), auditRoute(ctx.pool)],
    plainRoutes: dataPathRoutes(dataPath),
    dataPath,
    stopTimeoutMs: Math.max(ctx.limits.uploadDeadlineMs, DEADLINE_MS_MAX) + STOP_SLACK_MS,
    migrate: () => migrate(config.DATABASE_URL, SCHEMA, migrations),
    async start() {
      await checkStore(ctx, config);
      await gate.open(() => {
        sweepObjects.start();
        sweepRest.start();
        reconciler.start();
        auditSweeper.start();
        deletions.worker.start();
        avatars.start();
      });
    },
    stop: () =>
      stopAll(
        () => gate.close(),
        () => avatars.stop(),
        () => deletions.worker.stop(),
        () => Promise.all([sweepRest.stop(), reconciler.stop(), auditSweeper.stop()]),
        () => sweepObjects.stop(),
        close,
      ),
    checkReady: createSchemaCheck(ctx.pool, migrations),
  };
}
