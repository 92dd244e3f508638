import type { Transport } from '@connectrpc/connect';
import { publishChanges } from '@latchkey/audit/announce';
import { createDataService } from '@latchkey/kit/database/data-service';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import type { RpcService } from '@latchkey/kit/process/run-service';
import { createChangePublisher } from '@latchkey/kit/redis/account-changes';
import { redisUrls } from '@latchkey/kit/redis/redis-url';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { createAvatars, createAvatarWorker } from './avatars/avatar.queue.ts';
import { DECODE_MS } from './avatars/avatar-quota.ts';
import { createSetAvatar } from './avatars/set-avatar.client.ts';
import type { AvatarWorkerConfig, FilesConfig } from './config.ts';
import { openContext, openStorage, type Peers, SCHEMA, type StorageContext } from './context.ts';
import { createDataPath, dataPathRoutes } from './data-path.ts';
import { migrations } from './db/migrations.ts';
import { filesRoutes } from './files.rpc.ts';
import { checkStore } from './storage/object-store/check-store.ts';
import { createSweepers } from './sweepers.ts';

/** Time for what is under way besides uploads, calls and decoding when a service stops. */
const STOP_SLACK_MS = 30_000;

export function createFilesService(config: FilesConfig, deps: Peers & { readonly logger?: Logger; readonly clock?: () => Date }) {
  const logger = deps.logger ?? createLogger('files', config.LOG_LEVEL);
  const { ctx, close } = openContext(config, deps, logger, deps.clock);
  const avatars = createAvatars(ctx, redisUrls(config).queues, config.AVATAR_WORKER);
  const changes = createChangePublisher(redisUrls(config).events, logger, 'latchkey-files-changes');
  publishChanges(ctx.db, changes.publish);
  const dataPath = createDataPath(ctx, avatars.receive);
  const service = createDataService({
    ...databaseParts(config, ctx),
    routes: filesRoutes(ctx),
    prepare: () => checkStore(ctx, config),
    background: [...createSweepers(ctx, config, deps), ctx.processLock, ctx.usage, avatars, changes],
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
  const worker = createAvatarWorker({ ...ctx, setAvatar: createSetAvatar(identityTransport) }, redisUrls(config).queues);
  const service = createDataService({ ...databaseParts(config, ctx), routes: [], background: [worker], close });
  return { ...service, stopTimeoutMs: DECODE_MS + STOP_SLACK_MS };
}

const databaseParts = ({ DATABASE_URL: databaseUrl }: AvatarWorkerConfig, { pool, logger }: StorageContext) => {
  return { databaseUrl, schema: SCHEMA, pool, migrations, logger };
};
