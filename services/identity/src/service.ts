import type { Transport } from '@connectrpc/connect';
import { auditRoute } from '@latchkey/kit/audit/audit.rpc';
import { createAuditSweeper } from '@latchkey/kit/audit/audit-sweeper';
import { migrate } from '@latchkey/kit/database/migrate';
import { createSchemaGate } from '@latchkey/kit/database/schema-gate';
import { stopAll } from '@latchkey/kit/lifecycle';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { createSweeper } from '@latchkey/kit/sweeper';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import { accountRpc } from './account/account.rpc.ts';
import { apiKeyRpc } from './api-key/api-key.rpc.ts';
import { createFindOwnedApplications } from './api-key/owned-applications.client.ts';
import { authenticationRpc } from './authentication/authentication.rpc.ts';
import type { IdentityConfig } from './config.ts';
import { type ContextDeps, openContext, SCHEMA } from './context.ts';
import { migrations } from './db/migrations/index.ts';
import { oidcRpc } from './oidc/oidc.rpc.ts';
import { sweepUsedFlows } from './oidc/oidc.ts';
import { createDeletionConsumer, createDeletionReconciler } from './restriction/deleted-application.consumer.ts';
import { sweepSessions } from './session/session.ts';
import { twoFactorRpc } from './two-factor/two-factor.rpc.ts';

export type IdentityService = ReturnType<typeof createIdentityService>;

export interface IdentityDeps extends ContextDeps {
  readonly appsTransport: Transport;
  readonly logger?: Logger;
}

const SWEEP_INTERVAL_MS = 30_000;
/** Audit entries of one action for an account and a day of UTC. */
const AUDIT_ENTRIES_PER_DAY = 2_000;

export function createIdentityService(config: IdentityConfig, deps: IdentityDeps) {
  const logger = deps.logger ?? createLogger('identity', config.LOG_LEVEL);
  const { ctx, connect, checkReady, close } = openContext(config, logger, deps);
  const background = [
    createDeletionConsumer(ctx, config.REDIS_URL),
    createSweeper({
      intervalMs: SWEEP_INTERVAL_MS,
      logger: logger.child({ sweep: 'sessions, flows and deleted applications' }),
      sweeps: [
        (signal) => sweepSessions(ctx, signal),
        (signal) => sweepUsedFlows(ctx, signal),
        createDeletionReconciler(ctx, deps.appsTransport),
      ],
    }),
    createAuditSweeper({
      pool: ctx.pool,
      retentionDays: config.AUDIT_RETENTION_DAYS,
      entriesPerDay: AUDIT_ENTRIES_PER_DAY,
      logger,
    }),
  ];
  const gate = createSchemaGate(ctx.pool, migrations, logger);
  return {
    name: 'identity' as const,
    logger,
    routes: [
      rpcRoute(AccountService, accountRpc(ctx)),
      rpcRoute(ApiKeyService, apiKeyRpc(ctx, createFindOwnedApplications(deps.appsTransport))),
      rpcRoute(AuthenticationService, authenticationRpc(ctx)),
      rpcRoute(OidcService, oidcRpc(ctx)),
      rpcRoute(TwoFactorService, twoFactorRpc(ctx)),
      auditRoute(ctx.pool),
    ],
    /** Migrates the schema; returns the names of the migrations applied. */
    migrate: () => migrate(config.DATABASE_URL, SCHEMA, migrations),
    async start(): Promise<void> {
      // Before connecting, so that a stop meanwhile stops them.
      await gate.open(() => {
        for (const worker of background) worker.start();
      });
      await connect();
    },
    stop: () =>
      stopAll(
        () => gate.close(),
        // Concurrently, as each may wait for a statement or Redis, and before the database closes.
        () => Promise.all(background.map((worker) => worker.stop())),
        close,
      ),
    checkReady,
  };
}
