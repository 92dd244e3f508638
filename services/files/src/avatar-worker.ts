import type { Transport } from '@connectrpc/connect';
import { createDataService } from '@latchkey/kit/database/data-service';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import type { RpcService } from '@latchkey/kit/rpc/server/service-process';
import { createAvatarMaker } from './avatar/avatars.compose.ts';
import { openStorage, SCHEMA } from './compose.ts';
import type { AvatarWorkerConfig } from './config.ts';
import { migrations } from './db/migrations/index.ts';

/** Time for what is left of a stop beside an image that is being decoded, in milliseconds. */
const STOP_SLACK_MS = 30_000;

/** What the worker is composed with. */
export interface AvatarWorkerDeps {
  readonly identityTransport: Transport;
  readonly logger?: Logger;
}

/**
 * The worker of avatars as a service of its own, which answers nothing but probes: for images to be decoded elsewhere than files are kept, by a process that
 * is not given what signs download URLs.
 */
export function createAvatarWorkerService(config: AvatarWorkerConfig, deps: AvatarWorkerDeps): RpcService {
  const logger = deps.logger ?? createLogger('avatar-worker', config.LOG_LEVEL);
  const { ctx, close } = openStorage(config, logger);
  const worker = createAvatarMaker(ctx, { identityTransport: deps.identityTransport, redisUrl: config.REDIS_URL });
  const service = createDataService({
    databaseUrl: config.DATABASE_URL,
    schema: SCHEMA,
    pool: ctx.pool,
    migrations,
    logger,
    routes: [],
    background: [worker],
    close,
  });
  return { ...service, stopTimeoutMs: config.AVATAR_DECODE_SECONDS * 1_000 + STOP_SLACK_MS };
}
