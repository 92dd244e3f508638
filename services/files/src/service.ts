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
import type { FilesContext } from './context.ts';
import { createDataPath, dataPathRoutes, type FilesDataPath } from './data-path.ts';
import { migrations } from './db/migrations/index.ts';
import { createListDeleted } from './storage/application/deleted-application.client.ts';
import { createDeletionConsumer } from './storage/application/deleted-application.consumer.ts';
import { purgeTombstones } from './storage/application/deleted-application.ts';
import { createDeletionCatchUp } from './storage/application/deletion-catch-up.ts';
import { fileRpc } from './storage/file/file.rpc.ts';
import { explainBucketRefusal } from './storage/object-store/bucket-refusal.ts';
import { refuseLostStore } from './storage/object-store/lost-store.ts';
import { sweepAbandonedUploads, sweepObjectDeletions } from './storage/sweep/sweep.ts';
import { uploadRpc } from './storage/upload/upload.rpc.ts';

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
  /** Rejects while the database does not answer, and until its schema is up to date. Redis and the object store may be away. */
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
  const sweepRest = createSweeper({
    intervalMs: ctx.limits.sweepIntervalMs,
    logger,
    sweeps: [
      (signal) => sweepAbandonedUploads(ctx, signal),
      (signal) => avatars.sweep(signal),
      createDeletionCatchUp(ctx, createListDeleted(deps.appsTransport), sweepObjects.wake),
      () => purgeTombstones(ctx),
    ],
  });
  const auditSweeper = createAuditSweeper({
    pool: ctx.pool,
    retentionDays: config.AUDIT_RETENTION_DAYS,
    entriesPerDay: config.AUDIT_ENTRIES_PER_DAY,
    logger,
  });
  const deletions = createDeletionConsumer(ctx, config.REDIS_URL, sweepObjects.wake);
  const gate = createSchemaGate(ctx.pool, migrations, logger);
  return {
    name: 'files',
    logger,
    routes: [
      rpcRoute(FileService, { ...uploadRpc(ctx), ...fileRpc(ctx) }),
      rpcRoute(AvatarService, avatarRpc(ctx)),
      auditRoute(ctx.pool),
    ],
    plainRoutes: dataPathRoutes(dataPath),
    dataPath,
    stopTimeoutMs: Math.max(ctx.limits.uploadDeadlineMs, DEADLINE_MS_MAX) + STOP_SLACK_MS,
    migrate: () => migrate(config.DATABASE_URL, SCHEMA, migrations),
    async start() {
      await refuseLostStore(ctx.db, config);
      await checkStore(ctx, config);
      await gate.open(() => {
        sweepObjects.start();
        sweepRest.start();
        auditSweeper.start();
        deletions.start();
        avatars.start();
      });
    },
    stop: () =>
      stopAll(
        () => gate.close(),
        () => avatars.stop(),
        () => deletions.stop(),
        () => Promise.all([sweepRest.stop(), auditSweeper.stop()]),
        () => sweepObjects.stop(),
        close,
      ),
    checkReady: createSchemaCheck(ctx.pool, migrations),
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
