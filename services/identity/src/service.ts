import type { Transport } from '@connectrpc/connect';
import { auditRoute } from '@latchkey/audit/audit.rpc';
import { createAuditSweeper } from '@latchkey/audit/sweeper';
import { createDataService, type DataService } from '@latchkey/kit/database/data-service';
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
import { createOwnedApplications } from './api-key/owned-applications.client.ts';
import { authenticationRpc } from './authentication/authentication.rpc.ts';
import { type ContextDeps, openContext, SCHEMA } from './compose.ts';
import type { IdentityConfig } from './config.ts';
import { migrations } from './db/migrations/index.ts';
import { oidcRpc } from './oidc/oidc.rpc.ts';
import { createDeletionFollower } from './restriction/deleted-application.consumer.ts';
import { twoFactorRpc } from './two-factor/two-factor.rpc.ts';

/** The identity service. Redis may be down. */
export interface IdentityService extends DataService {
  readonly name: 'identity';
}

/** What the service is composed with. All but the transport has a default. */
export interface IdentityDeps extends ContextDeps {
  /** Reaches the apps service. */
  readonly appsTransport: Transport;
  readonly logger?: Logger;
}

const RECONCILE_INTERVAL_MS = 30_000;

/** Composes the identity service. */
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
  const reconciler = createSweeper({
    intervalMs: RECONCILE_INTERVAL_MS,
    logger: logger.child({ sweep: 'deleted applications' }),
    sweeps: [deletions.reconcile],
  });
  const service = createDataService({
    databaseUrl: config.DATABASE_URL,
    schema: SCHEMA,
    pool: ctx.pool,
    migrations,
    logger,
    routes: [
      rpcRoute(AccountService, accountRpc(ctx)),
      rpcRoute(ApiKeyService, apiKeyRpc(ctx, createOwnedApplications(deps.appsTransport))),
      rpcRoute(AuthenticationService, authenticationRpc(ctx)),
      rpcRoute(OidcService, oidcRpc(ctx)),
      rpcRoute(TwoFactorService, twoFactorRpc(ctx)),
      auditRoute(ctx.pool),
    ],
    prepare: connect,
    background: [deletions.worker, reconciler, auditSweeper],
    close,
  });
  return { name: 'identity', ...service };
}
