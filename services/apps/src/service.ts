import { publishChanges } from '@latchkey/audit/announce';
import { auditRoute } from '@latchkey/audit/audit.rpc';
import { deriveResultKey, withIdempotency } from '@latchkey/audit/idempotency';
import { createAuditSweeper } from '@latchkey/audit/retention';
import { createBufferedCounts } from '@latchkey/kit/concurrency/buffered-counts';
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
import { appsRpc } from './apps.rpc.ts';
import type { AppsConfig } from './config.ts';
import { createContext } from './context.ts';
import { migrations } from './db/migrations.ts';
import { createRelay, QUEUES } from './relay/relay.ts';
import { releaseRpc } from './release/release.rpc.ts';
import { createRetentionSweep, RETENTION_INTERVAL_MS } from './retention/retention.ts';
import { createSecretKeyCheck } from './runtime-key/runtime-key.ts';
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
  const database = createDatabase({ url: databaseUrl, schema: SCHEMA, poolMax, logger });
  const { db, pool } = database;
  const wakeRelay = () => relay.wake();
  const producer = createQueueProducer({ url: queues, name: 'latchkey-apps-relay', queues: QUEUES, logger, onReady: wakeRelay });
  const { publish, ...publisher } = createEventPublisher(events, logger, 'latchkey-apps-events', wakeRelay);
  const relay = createRelay({ db, publish, producer, clock }, logger);
  const changes = createChangePublisher(events, logger, 'latchkey-apps-changes');
  publishChanges(db, changes.publish);
  const usage = createBufferedCounts<'applicationId', 'events'>({
    name: 'usage',
    key: 'applicationId',
    logger,
    deliver: (counts) => recordUsage({ db, clock }, counts),
  });
  const ctx = createContext(config, database, { clock, wakeRelay, usage });
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
