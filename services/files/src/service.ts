import type { Transport } from '@connectrpc/connect';
import { publishChanges } from '@latchkey/audit/announce';
import { withIdempotency } from '@latchkey/audit/idempotency';
import { createDataService } from '@latchkey/kit/database/data-service';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import type { RpcService } from '@latchkey/kit/process/run-service';
import { createChangePublisher } from '@latchkey/kit/redis/account-changes';
import { redisUrls } from '@latchkey/kit/redis/redis-url';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { createAvatars, createAvatarWorker } from './avatars/avatar.queue.ts';
import { avatarRpc } from './avatars/avatar.rpc.ts';
import { DECODE_MS } from './avatars/avatar-quota.ts';
import type { AvatarWorkerConfig, FilesConfig } from './config.ts';
import { openContext, openStorage, SCHEMA } from './context.ts';
import { createDataPath, dataPathRoutes } from './data-path.ts';
import { migrations } from './db/migrations.ts';
import { filesRoutes } from './files.rpc.ts';
import { checkStore } from './storage/object-store/check-store.ts';
import { createSweepers } from './sweepers.ts';

/** Time for what is under way besides uploads, calls and decoding when a service stops. */
const STOP_SLACK_MS = 30_000;

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
