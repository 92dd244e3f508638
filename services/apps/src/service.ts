import { auditRoute } from '@latchkey/audit/audit.rpc';
import { createAuditSweeper } from '@latchkey/audit/sweeper';
import { createDataService, type DataService } from '@latchkey/kit/database/data-service';
import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { CallQueue } from '@latchkey/kit/process/call-queue';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createSweeper } from '@latchkey/kit/process/sweeper';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { applicationRpc } from './application/application.rpc.ts';
import type { AppsConfig } from './config.ts';
import type { AppsContext } from './context.ts';
import { migrations } from './db/migrations/index.ts';
import type { AppsDatabase } from './db/schema.ts';
import { eventRpc } from './event/event.rpc.ts';
import { licenseLevelRpc } from './license-level/license-level.rpc.ts';
import { createRelay, QUEUES } from './relay/relay.ts';
import { createRetentionSweep } from './retention/retention.ts';
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

/** What callers may replace. */
export interface AppsOverrides {
  readonly logger?: Logger;
  readonly clock?: () => Date;
  /** Events of an application that are retained. */
  readonly eventCount?: number;
  /** How long deletions are retained, in days. */
  readonly deletionDays?: number;
}

export const SCHEMA = 'apps';

const RETENTION_INTERVAL_MS = 5 * 60_000;

/** Concurrent creations wait only for those of their account. The rate limit of the gateway bounds them all. */
const CREATIONS = {
  underWay: Number.POSITIVE_INFINITY,
  underWayOfKey: 1,
  size: Number.POSITIVE_INFINITY,
  sizeOfKey: 200,
  waitMs: 4_000,
};

/** Composes the apps service. Nothing is connected before the first call. */
export function createAppsService(config: AppsConfig, overrides: AppsOverrides = {}): AppsService {
  const { logger = createLogger('apps', config.LOG_LEVEL), clock = () => new Date() } = overrides;
  const database = createDatabase<AppsDatabase>({
    url: config.DATABASE_URL,
    schema: SCHEMA,
    poolMax: config.DATABASE_POOL_MAX,
    logger,
  });
  const { db, pool } = database;
  const producer = createQueueProducer({
    url: config.REDIS_URL,
    name: 'latchkey-apps-relay',
    queues: QUEUES,
    logger,
    onReady: () => relay.wake(),
  });
  const relay = createRelay({ db, producer, clock }, logger);
  const { eventCount = 1_000, deletionDays = 30 } = overrides;
  const retention = { eventHours: config.EVENT_RETENTION_HOURS, eventCount, deletionDays };
  const sweeper = createSweeper({
    intervalMs: RETENTION_INTERVAL_MS,
    logger,
    sweeps: [createRetentionSweep(db, clock, retention)],
  });
  const auditSweeper = createAuditSweeper({
    pool,
    retentionDays: config.AUDIT_RETENTION_DAYS,
    logger,
  });
  const ctx: AppsContext = {
    db,
    pool,
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
    pool,
    migrations,
    logger,
    routes: [
      rpcRoute(ApplicationService, {
        ...applicationRpc(ctx),
        ...settingRpc(ctx),
        ...licenseLevelRpc(ctx),
        ...runtimeKeyRpc(ctx),
        ...eventRpc(ctx),
      }),
      auditRoute(pool),
    ],
    async prepare() {
      await checkSecretKey();
      producer.connect();
    },
    background: [relay, sweeper, auditSweeper],
    checkReady: checkSecretKey,
    close: () =>
      stopAll(
        () => producer.close(),
        () => database.close(),
      ),
  });
  return { name: 'apps', ...service };
}
