import { randomBytes } from 'node:crypto';
import { createDatabase } from '@latchkey/kit/database/database';
import { stopAll } from '@latchkey/kit/lifecycle';
import type { Logger } from '@latchkey/kit/logger';
import { connectInBackground, createFailFastRedis } from '@latchkey/kit/redis';
import { deriveKey } from '@latchkey/kit/secrets';
import { createPasswords, type Passwords } from './account/password.ts';
import { createFailedAttempts } from './audit/failed-attempts.ts';
import type { IdentityConfig } from './config.ts';
import type { IdentityContext } from './context.ts';
import type { IdentityDatabase } from './db/schema.ts';
import { createEpochs, type Epochs } from './epoch/epoch.ts';
import { createIssuers } from './oidc/issuers.ts';
import { createSessionSweeper } from './session/session-sweeper.ts';

/** The schema that the service has in its database. */
export const SCHEMA = 'identity';

/** What the use cases may work with otherwise. */
export interface ContextDeps {
  readonly clock?: () => Date;
  /** Cryptographically secure random bytes. */
  readonly random?: (bytes: number) => Buffer;
  /** Waits for so many milliseconds, where Redis can't be told of a change. */
  readonly wait?: (ms: number) => Promise<unknown>;
  readonly passwords?: Passwords;
  /** Stands in for those in Redis, which is not connected to then. */
  readonly epochs?: Epochs;
}

/** What the use cases work on, and its beginning and end. */
export interface OpenContext {
  readonly ctx: IdentityContext;
  /** Connects to Redis. Never fails: while Redis is away, it goes on trying behind the scenes. */
  connect(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the database and the Redis that the settings name. Nothing is connected before the first use. */
export function openContext(config: IdentityConfig, logger: Logger, deps: ContextDeps): OpenContext {
  const { clock = () => new Date(), random = randomBytes } = deps;
  const database = createDatabase<IdentityDatabase>({
    url: config.DATABASE_URL,
    schema: SCHEMA,
    poolMax: config.DATABASE_POOL_MAX,
    logger,
  });
  const redis = createFailFastRedis(config.REDIS_URL, logger, { name: 'latchkey-identity' });
  const ctx: IdentityContext = {
    db: database.db,
    pool: database.pool,
    epochs: deps.epochs ?? createEpochs({ redis, random, logger, ...(deps.wait && { wait: deps.wait }) }),
    passwords: deps.passwords ?? createPasswords(passwordBounds(config)),
    sessionSweeper: createSessionSweeper(database.db, clock, logger),
    failedAttempts: createFailedAttempts(database.db, logger),
    clock,
    random,
    logger,
    apiKeyPepper: deriveKey(config.SECRET_KEY, 'identity/api-key-pepper'),
    csrfKey: deriveKey(config.SECRET_KEY, 'identity/csrf'),
    twoFactorKey: deriveKey(config.SECRET_KEY, 'identity/two-factor'),
    recoveryCodeKey: deriveKey(config.SECRET_KEY, 'identity/recovery-code'),
    twoFactorFailuresMax: config.TWO_FACTOR_FAILURES_PER_15_MINUTES,
    passwordFailuresMax: config.PASSWORD_FAILURES_PER_15_MINUTES,
    oidcKey: deriveKey(config.SECRET_KEY, 'identity/oidc'),
    oidcIssuers: createIssuers(config.oidcIssuers, { callTimeoutMs: config.OIDC_TIMEOUT_MS, clock, logger }),
    signUp: config.SIGN_UP,
    activeApiKeysMax: config.ACTIVE_API_KEYS_LIMIT,
  };
  return {
    ctx,
    connect: async () => (deps.epochs ? undefined : connectInBackground(redis)),
    close: () =>
      stopAll(
        () => Promise.all([ctx.sessionSweeper.idle(), ctx.failedAttempts.flush()]),
        () => redis.disconnect(),
        () => database.close(),
      ),
  };
}

function passwordBounds(config: IdentityConfig) {
  return { atOnce: config.PASSWORD_HASHES_AT_ONCE, waitingMax: config.PASSWORD_HASHES_WAITING };
}
