import { auditRoute } from '@latchkey/kit/audit/audit.rpc';
import { createAuditSweeper } from '@latchkey/kit/audit/audit-sweeper';
import { CallQueue } from '@latchkey/kit/call-queue';
import { createDatabase } from '@latchkey/kit/database/database';
import { migrate } from '@latchkey/kit/database/migrate';
import { createSchemaCheck } from '@latchkey/kit/database/schema-check';
import { createSchemaGate } from '@latchkey/kit/database/schema-gate';
import { stopAll } from '@latchkey/kit/lifecycle';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import { createQueueProducer } from '@latchkey/kit/queue-producer';
import { type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
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

/** The service, composed and not yet started. */
export interface AppsService {
  readonly name: 'apps';
  readonly logger: Logger;
  readonly routes: readonly RpcRoute[];
  /** Brings the schema up to date; returns the names of the migrations applied. */
  migrate(): Promise<string[]>;
  /** Begins to deliver events, also while Redis is away, and to trim the event log. Throws when SECRET_KEY is not the one that the stored keys were sealed with. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Rejects while the database does not answer, until its schema is up to date, and where SECRET_KEY is not that schema's. Redis may be away. */
  checkReady(): Promise<void>;
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
    entriesPerDay: config.AUDIT_ENTRIES_PER_DAY,
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
  const checkSchema = createSchemaCheck(database.pool, migrations);
  const checkSecretKey = createSecretKeyCheck(ctx);
  const gate = createSchemaGate(database.pool, migrations, logger);
  return {
    name: 'apps',
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
    migrate: () => migrate(config.DATABASE_URL, SCHEMA, migrations),
    async start() {
      await checkSecretKey();
      producer.connect();
      await gate.open(() => {
        relay.start();
        trimmer.start();
        auditSweeper.start();
      });
    },
    stop: () =>
      stopAll(
        () => gate.close(),
        () => Promise.all([relay.stop(), trimmer.stop(), auditSweeper.stop()]),
        () => producer.close(),
        () => database.close(),
      ),
    async checkReady() {
      await checkSchema();
      await checkSecretKey();
    },
  };
}
