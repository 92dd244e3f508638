import type { Transport } from '@connectrpc/connect';
import { publishChanges } from '@latchkey/audit/announce';
import { auditRoute } from '@latchkey/audit/audit.rpc';
import { createAuditSweeper } from '@latchkey/audit/retention';
import { createDataService } from '@latchkey/kit/database/data-service';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { createChangePublisher } from '@latchkey/kit/redis/account-changes';
import { redisUrls } from '@latchkey/kit/redis/redis-url';
import { createSweeper } from '@latchkey/kit/sweeper/sweeper';
import { createDeletionFollower } from './api-key/restriction.ts';
import type { IdentityConfig } from './config.ts';
import { type ContextDeps, type IdentityContext, openContext, SCHEMA } from './context.ts';
import { migrations } from './db/migrations.ts';
import { sweepDeletedAccounts } from './deletion/delete-account.ts';
import { identityRoutes } from './identity.rpc.ts';
import { createMailQueue } from './mail/mail-queue.ts';
import { createSmtp } from './mail/smtp.ts';
import { expirySweeps } from './retention/retention.ts';

export type IdentityService = ReturnType<typeof createIdentityService>;

export interface IdentityDeps extends ContextDeps {
  readonly appsTransport: Transport;
  readonly logger?: Logger;
}

const SWEEP_INTERVAL_MS = 30_000;

/** Composes the identity service, which runs while Redis is down. */
export function createIdentityService(config: IdentityConfig, deps: IdentityDeps) {
  const { appsTransport, logger = createLogger('identity', config.LOG_LEVEL) } = deps;
  const { ctx, connect, close } = openContext(config, logger, deps);
  const { pool } = ctx;
  const changes = createChangePublisher(redisUrls(config).events, logger, 'latchkey-identity-changes');
  publishChanges(ctx.db, changes.publish);
  const deletions = createDeletionFollower(ctx, { redisUrl: redisUrls(config).queues, appsTransport });
  const mails = openMailQueue(config, ctx);
  const sweeper = createSweeper({
    intervalMs: SWEEP_INTERVAL_MS,
    logger,
    sweeps: { ...expirySweeps(ctx), restrictions: deletions.reconcile },
  });
  // Alone, as a deletion wakes it, and so that nothing else delays it.
  const accountSweeper = createSweeper({
    intervalMs: SWEEP_INTERVAL_MS,
    logger,
    sweeps: { deleted_accounts: (signal) => sweepDeletedAccounts(ctx, signal) },
  });
  const auditSweeper = createAuditSweeper({ db: ctx.db, pool, retentionDays: config.AUDIT_RETENTION_DAYS, logger });
  const service = createDataService({
    databaseUrl: config.DATABASE_URL,
    schema: SCHEMA,
    pool,
    migrations,
    logger,
    routes: [...identityRoutes(ctx, accountSweeper.wake, mails), auditRoute(pool)],
    prepare: connect,
    background: [changes, deletions.worker, sweeper, accountSweeper, auditSweeper, ...(mails ? [mails] : [])],
    close,
  });
  return { name: 'identity' as const, ...service };
}

function openMailQueue(config: IdentityConfig, ctx: IdentityContext) {
  const { SMTP_URL, MAIL_FROM, PUBLIC_URL: publicUrl } = config;
  if (SMTP_URL === undefined || MAIL_FROM === undefined) return undefined;
  return createMailQueue(ctx, { redisUrl: redisUrls(config).queues, publicUrl, send: createSmtp(SMTP_URL, MAIL_FROM) });
}
