import { createRouterTransport, type Transport } from '@connectrpc/connect';
import type { Acting } from '@latchkey/audit/actor';
import { deriveResultKey } from '@latchkey/audit/idempotency';
import { deriveKey } from '@latchkey/kit/crypto/secrets';
import { createDatabase } from '@latchkey/kit/database/database';
import type { Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { connectInBackground, createFailFastRedis } from '@latchkey/kit/redis/redis';
import { redisUrls } from '@latchkey/kit/redis/redis-url';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { createPasswords, type PasswordCall, type Passwords } from './account/password.ts';
import { createAppsClient } from './apps/apps.client.ts';
import { createCredentialFailureLog } from './audit/credential-failures.ts';
import { createEpochs, type Epochs } from './authentication/principal-epoch.ts';
import type { IdentityConfig } from './config.ts';
import { createIssuers } from './oidc/issuer.ts';
import { createIssuerKeys } from './trusted-issuer/issuer-keys.ts';

export const SCHEMA = 'identity';

export type IdentityContext = ReturnType<typeof openContext>['ctx'];
export type ActingContext = Acting<IdentityContext> & {
  /** The RPC that acts; undefined for the operator. */
  readonly call?: PasswordCall & { timeoutMs(): number };
};

export interface ContextDeps {
  /** Calls the apps service; absent for the operator, whose commands do not call it. */
  readonly appsTransport?: Transport;
  readonly clock?: () => Date;
  /** Waits while Redis cannot invalidate cached principals. */
  readonly wait?: (ms: number) => Promise<unknown>;
  readonly passwords?: Passwords;
  /** Replaces the epochs in Redis, which is then not connected to. */
  readonly epochs?: Epochs;
  readonly oidcTimeoutMs?: number;
}

export function openContext(config: IdentityConfig, logger: Logger, deps: ContextDeps) {
  const { clock = () => new Date(), wait, oidcTimeoutMs } = deps;
  const { DATABASE_URL: url, DATABASE_POOL_MAX: poolMax, SECRET_KEY } = config;
  const database = createDatabase<unknown>({ url, schema: SCHEMA, poolMax, logger });
  const redis = createFailFastRedis(redisUrls(config).limits, logger, { name: 'latchkey-identity' });
  const internalHosts = new Set(config.TRUSTED_ISSUER_INTERNAL_HOSTS);
  const ctx = {
    db: database.db,
    /** For the named statements of authentication, which nearly every request runs. */
    pool: database.pool,
    apps: createAppsClient(deps.appsTransport ?? createRouterTransport(() => undefined)),
    epochs: deps.epochs ?? createEpochs(redis, logger, wait),
    passwords:
      deps.passwords ??
      createPasswords({ waitMs: () => DEADLINES_MS[redis.status === 'ready' ? 'passwords' : 'passwordsWithoutRedis'] }),
    credentialFailures: createCredentialFailureLog(database.db, logger),
    clock,
    logger,
    apiKeyPepper: deriveKey(SECRET_KEY, 'identity/api-key-pepper'),
    csrfKey: deriveKey(SECRET_KEY, 'identity/csrf'),
    twoFactorKey: deriveKey(SECRET_KEY, 'identity/two-factor'),
    recoveryCodeKey: deriveKey(SECRET_KEY, 'identity/recovery-code'),
    oidcKey: deriveKey(SECRET_KEY, 'identity/oidc'),
    mailLinkKey: deriveKey(SECRET_KEY, 'identity/mail-link'),
    resultKey: deriveResultKey(SECRET_KEY),
    twoFactorFailuresMax: config.TWO_FACTOR_FAILURES_PER_15_MINUTES,
    oidcIssuers: createIssuers(config.oidcIssuers, { clock, logger, callTimeoutMs: oidcTimeoutMs }),
    issuerKeys: createIssuerKeys({ clock, logger, internalHosts, callTimeoutMs: oidcTimeoutMs }),
    internalHosts,
    signUp: config.SIGN_UP,
    activeApiKeysMax: config.ACTIVE_API_KEYS_LIMIT,
  } as const;
  return {
    ctx,
    connect: async () => (deps.epochs ? undefined : connectInBackground(redis)),
    close: () =>
      stopAll(
        () => ctx.credentialFailures.flush(),
        () => redis.disconnect(),
        () => database.close(),
      ),
  };
}
