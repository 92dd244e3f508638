import type { Transport } from '@connectrpc/connect';
import { createDataService } from '@latchkey/kit/database/data-service';
import { createLogger } from '@latchkey/kit/log/logger';
import type { RpcService } from '@latchkey/kit/process/run-service';
import { openStorage, SCHEMA } from '../compose.ts';
import type { AvatarWorkerConfig } from '../config.ts';
import { migrations } from '../db/migrations/index.ts';
import { DECODE_MS } from './avatar-limits.ts';
import { createAvatarWorker } from './avatars.compose.ts';

/** Time for a stop beside an image that is being decoded, in milliseconds. */
const STOP_SLACK_MS = 30_000;

/**
 * The avatar worker as a process of its own, which answers probes only: it decodes images away from
 * the stored files, and does not hold the key that signs download URLs.
 */
export function createAvatarWorkerService(config: AvatarWorkerConfig, identityTransport: Transport): RpcService {
  const logger = createLogger('avatar-worker', config.LOG_LEVEL);
  const { ctx, close } = openStorage(config, logger);
  const worker = createAvatarWorker(ctx, { identityTransport, redisUrl: config.REDIS_URL });
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
  return { ...service, stopTimeoutMs: DECODE_MS + STOP_SLACK_MS };
}
