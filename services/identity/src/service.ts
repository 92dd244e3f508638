import type { Transport } from '@connectrpc/connect';
import { auditRoute } from '@latchkey/audit/audit.rpc';
import { createAuditSweeper } from '@latchkey/audit/sweeper';
import { createDataService, type DataService } from '@latchkey/kit/database/data-service';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { createSweeper } from '@latchkey/kit/process/sweeper';
import { rpcRoute } from '@latchkey/kit/rpc/route';
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
import { createDeletionFollower } from './restriction/restriction.ts';
import { sweepSessions } from './session/session.ts';
import { twoFactorRpc } from './two-factor/two-factor.rpc.ts';

/** The identity service. Redis may be down. */
export interface IdentityService extends DataService {
  readonly name: 'identity';
}

export interface IdentityDeps extends ContextDeps {
  readonly appsTransport: Transport;
  readonly logger?: Logger;
}

const SWEEP_INTERVAL_MS = 30_000;

export function createIdentityService(config: IdentityConfig, deps: IdentityDeps): IdentityService {
  const logger = deps.logger ?? createLogger('identity', config.LOG_LEVEL);
  const { ctx, connect, close } = openContext(config, logger, deps);
  const auditSweeper = createAuditSweeper({
    pool: ctx.pool,
    retentionDays: config.AUDIT_RETENTION_DAYS,
    logger,
  });
  const sources = { redisUrl: config.REDIS_URL, appsTransport: deps.appsTransport };
  const deletions = createDeletionFollower(ctx, sources);
  const sweeper = createSweeper({
    intervalMs: SWEEP_INTERVAL_MS,
    logger: logger.child({ sweep: 'sessions, flows and deleted applications' }),
    sweeps: [(signal) => sweepSessions(ctx, signal), (signal) => sweepUsedFlows(ctx, signal), deletions.reconcile],
  });
  const service = createDataService({
    databaseUrl: config.DATABASE_URL,
    schema: SCHEMA,
    pool: ctx.pool,
    migrations,
    logger,
    routes: [
      rpcRoute(AccountService, accountRpc(ctx)),
      rpcRoute(ApiKeyService, apiKeyRpc(ctx, createFindOwnedApplications(deps.appsTransport))),
      rpcRoute(AuthenticationService, authenticationRpc(ctx)),
      rpcRoute(OidcService, oidcRpc(ctx)),
      rpcRoute(TwoFactorService, twoFactorRpc(ctx)),
      auditRoute(ctx.pool),
    ],
    prepare: connect,
    background: [deletions.worker, sweeper, auditSweeper],
    close,
  });
  return { name: 'identity', ...service };
}
