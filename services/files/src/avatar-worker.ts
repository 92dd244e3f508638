import type { Transport } from '@connectrpc/connect';
import { checkDatabase } from '@latchkey/kit/database/database';
import { migrate } from '@latchkey/kit/database/migrate';
import { stopAll } from '@latchkey/kit/lifecycle';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import type { RpcService } from '@latchkey/kit/rpc/service-process';
import { createAvatarMaker } from './avatar/avatars.compose.ts';
import { openContext, SCHEMA } from './compose.ts';
import type { FilesConfig } from './config.ts';
import { migrations } from './db/migrations/index.ts';

/** What the worker is composed with. */
export interface AvatarWorkerDeps {
  readonly appsTransport: Transport;
  readonly identityTransport: Transport;
  readonly logger?: Logger;
}

/** The worker of avatars as a service of its own, which answers nothing but probes: for images to be decoded elsewhere than files are kept. */
export function createAvatarWorkerService(config: FilesConfig, deps: AvatarWorkerDeps): RpcService {
  const logger = deps.logger ?? createLogger('avatar-worker', config.LOG_LEVEL);
  const { ctx, close } = openContext(config, deps.appsTransport, logger);
  const worker = createAvatarMaker(ctx, { identityTransport: deps.identityTransport, redisUrl: config.REDIS_URL });
  return {
    logger,
    routes: [],
    migrate: () => migrate(config.DATABASE_URL, SCHEMA, migrations),
    start: async () => worker.start(),
    stop: () => stopAll(() => worker.stop(), close),
    checkReady: () => checkDatabase(ctx.pool),
  };
}
