import { auditRoute } from '@latchkey/audit/audit.rpc';
import { createAuditSweeper } from '@latchkey/audit/sweeper';
import { CallQueue } from '@latchkey/kit/call-queue';
import { createDataService, type DataService } from '@latchkey/kit/database/data-service';
import { createDatabase } from '@latchkey/kit/database/database';
import { stopAll } from '@latchkey/kit/lifecycle';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import { createQueueProducer } from '@latchkey/kit/queue-producer';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { applicationRpc } from './application/application.rpc.ts';
import type { AppsConfig } from './config.ts';
import type { AppsContext } from './context.ts';
import { migrations } from './db/migrations/index.ts';
import type { AppsDatabase } from './db/schema.ts';
import { deletionRpc } from './deletion/deletion.rpc.ts';
import { eventRpc } from './event/event.rpc.ts';
import { licenseLevelRpc } from './license-level/license-level.rpc.ts';
import { liveStateRpc } from './live-state/live-state.rpc.ts';
import { QUEUES } from './relay/consumers.ts';
import { createRelay } from './relay/relay.ts';
import { createTrimmer } from './retention/trimmer.ts';
import { runtimeKeyRpc } from './runtime-key/runtime-key.rpc.ts';
import { createSecretKeyCheck } from './runtime-key/runtime-key.ts';
import { createVault } from './runtime-key/vault.ts';
import { settingRpc } from './setting/setting.rpc.ts';

/**
 * The apps service. Its start rejects, and it is not ready, unless SECRET_KEY is the one that the
 * stored keys were sealed with. Redis may be down.
 */
export interface AppsService extends DataService {
  readonly name: 'apps';
}

/** What a composition may replace. */
export interface AppsOverrides {
  readonly logger?: Logger;
  readonly clock?: () => Date;
}

export const SCHEMA = 'apps';

/** Accounts take turns of themselves only; the rate limit of the gateway bounds how many creations an account has at all. */
const CREATIONS = {
  underWay: Number.POSITIVE_INFINITY,
  underWayOfKey: 1,
  size: Number.POSITIVE_INFINITY,
  sizeOfKey: 200,
  waitMs: 4_000,
};

/**
 * Composes the apps service. Nothing is connected before the first call.
 *
 * @param overrides what stands in for the process's own logger and clock
 */
export function createAppsService(config: AppsConfig, overrides: AppsOverrides = {}): AppsService {
  const logger = overrides.logger ?? createLogger('apps', config.LOG_LEVEL);
  const database = createDatabase<AppsDatabase>({
    url: config.DATABASE_URL,
    schema: SCHEMA,
    poolMax: config.DATABASE_POOL_MAX,
    logger,
  });
  const clock = overrides.clock ?? (() => new Date());
  const producer = createQueueProducer({
    url: config.REDIS_URL,
    name: 'latchkey-apps-relay',
    queues: QUEUES,
    logger,
    onReady: () => relay.retry(),
  });
  const relay = createRelay({ db: database.db, producer, clock }, logger);
  const retention = {
    eventHours: config.EVENT_RETENTION_HOURS,
    eventCount: config.EVENT_RETENTION_COUNT,
    deletionDays: config.DELETION_RETENTION_DAYS,
  };
  const trimmer = createTrimmer({ db: database.db, clock, retention }, logger);
  const auditSweeper = createAuditSweeper({
    pool: database.pool,
    retentionDays: config.AUDIT_RETENTION_DAYS,
    logger,
  });
  const ctx: AppsContext = {
    db: database.db,
    pool: database.pool,
    vault: createVault(config.SECRET_KEY),
    clock,
    wakeRelay: () => relay.wake(),
    rotationsPerHour: config.RUNTIME_KEY_ROTATIONS_PER_HOUR,
    creations: new CallQueue(CREATIONS),
    applicationsMax: config.APPLICATIONS_LIMIT,
  };
  const checkSecretKey = createSecretKeyCheck(ctx);
  const service = createDataService({
    databaseUrl: config.DATABASE_URL,
    schema: SCHEMA,
    pool: database.pool,
    migrations,
    logger,
    routes: [
      rpcRoute(ApplicationService, {
        ...applicationRpc(ctx),
        ...settingRpc(ctx),
        ...licenseLevelRpc(ctx),
        ...runtimeKeyRpc(ctx),
        ...deletionRpc(ctx),
        ...eventRpc(ctx),
        ...liveStateRpc(ctx),
      }),
      auditRoute(database.pool),
    ],
    async prepare() {
      await checkSecretKey();
      producer.connect();
    },
    background: [relay, trimmer, auditSweeper],
    checkReady: checkSecretKey,
    close: () =>
      stopAll(
        () => producer.close(),
        () => database.close(),
      ),
  });
  return { name: 'apps', ...service };
}
