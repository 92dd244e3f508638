import { publishChanges } from '@latchkey/audit/announce';
import { auditRoute } from '@latchkey/audit/audit.rpc';
import { deriveResultKey, withIdempotency } from '@latchkey/audit/idempotency';
import { createAuditSweeper } from '@latchkey/audit/retention';
import { createBufferedCounts } from '@latchkey/kit/concurrency/buffered-counts';
import { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import { deriveKey } from '@latchkey/kit/crypto/secrets';
import { createDataService } from '@latchkey/kit/database/data-service';
import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createQueueProducer } from '@latchkey/kit/queue/producer';
import { createChangePublisher } from '@latchkey/kit/redis/account-changes';
import { createEventPublisher } from '@latchkey/kit/redis/live-channels';
import { redisUrls } from '@latchkey/kit/redis/redis-url';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { createSweeper } from '@latchkey/kit/sweeper/sweeper';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ReleaseService } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { createReads } from './application/application.store.ts';
import { WRITES } from './application/change-application.ts';
import { appsRpc } from './apps.rpc.ts';
import type { AppsConfig } from './config.ts';
import type { AppsContext } from './context.ts';
import { migrations } from './db/migrations.ts';
import type { AppsDatabase } from './db/schema.ts';
import { createRelay, QUEUES } from './relay/relay.ts';
import { releaseRpc } from './release/release.rpc.ts';
import { createRetentionSweep, RETENTION_INTERVAL_MS } from './retention/retention.ts';
import { createSecretKeyCheck } from './runtime-key/runtime-key.ts';
import { Vault } from './runtime-key/vault.ts';
import { createUsageSweep, recordUsage } from './usage/usage.ts';

export type AppsService = ReturnType<typeof createAppsService>;

export interface AppsOverrides {
  readonly logger?: Logger;
  readonly clock?: () => Date;
}

export const SCHEMA = 'apps';

/** Start rejects unless SECRET_KEY is the one that the stored keys were sealed with. */
export function createAppsService(config: AppsConfig, overrides: AppsOverrides = {}) {
  const { logger = createLogger('apps', config.LOG_LEVEL), clock = () => new Date() } = overrides;
  const { DATABASE_URL: databaseUrl, DATABASE_POOL_MAX: poolMax } = config;
  const { queues, events } = redisUrls(config);
  const database = createDatabase<AppsDatabase>({ url: databaseUrl, schema: SCHEMA, poolMax, logger });
  const { db, pool } = database;
  const onReady = () => relay.wake();
  const producer = createQueueProducer({ url: queues, name: 'latchkey-apps-relay', queues: QUEUES, logger, onReady });
  const { publish, ...publisher } = createEventPublisher(events, logger, 'latchkey-apps-events', onReady);
  const relay = createRelay({ db, publish, producer, clock }, logger);
  const changes = createChangePublisher(events, logger, 'latchkey-apps-changes');
  publishChanges(db, changes.publish);
  const usage = createBufferedCounts<'applicationId', 'events'>({
    name: 'usage',
    key: 'applicationId',
    logger,
    deliver: (counts) => recordUsage({ db, clock }, counts),
  });
  const ctx: AppsContext = {
    db,
    pool,
    reads: createReads(pool),
    vault: new Vault(config.SECRET_KEY),
    downloadKey: deriveKey(config.SECRET_KEY, 'apps/update-download'),
    clock,
    wakeRelay: () => relay.wake(),
    rotationsPerHour: config.RUNTIME_KEY_ROTATIONS_PER_HOUR,
    writes: new CallQueue(WRITES),
    applicationsMax: config.APPLICATIONS_LIMIT,
    usage,
  };
  const checkSecretKey = createSecretKeyCheck(ctx);
  const service = createDataService({
    databaseUrl,
    schema: SCHEMA,
    pool,
    migrations,
    logger,
    routes: [
      withIdempotency(rpcRoute(ApplicationService, appsRpc(ctx)), { sealingKey: deriveResultKey(config.SECRET_KEY) }),
      withIdempotency(rpcRoute(ReleaseService, releaseRpc(ctx)), { sealingKey: deriveResultKey(config.SECRET_KEY) }),
      auditRoute(pool),
    ],
    async prepare() {
      await checkSecretKey();
      producer.connect();
      publisher.connect();
    },
    background: [
      changes,
      relay,
      usage,
      createSweeper({
        intervalMs: RETENTION_INTERVAL_MS,
        logger,
        sweeps: { events: createRetentionSweep(db, clock), daily_usage: createUsageSweep(ctx) },
      }),
      createAuditSweeper({ db, pool, retentionDays: config.AUDIT_RETENTION_DAYS, logger }),
    ],
    checkReady: checkSecretKey,
    close: () =>
      stopAll(
        () => producer.close(),
        () => publisher.close(),
        () => database.close(),
      ),
  });
  return { name: 'apps' as const, ...service };
}
