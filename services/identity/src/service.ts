import { randomBytes } from 'node:crypto';
import type { Transport } from '@connectrpc/connect';
import { checkDatabase, createDatabase } from '@latchkey/kit/database/database';
import { migrate } from '@latchkey/kit/database/migrate';
import { stopAll } from '@latchkey/kit/lifecycle';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import { connectInBackground, createFailFastRedis } from '@latchkey/kit/redis';
import { type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
import { deriveKey } from '@latchkey/kit/secrets';
import { createSweeper } from '@latchkey/kit/sweeper';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { accountRpc } from './account/account.rpc.ts';
import { createPasswords, type Passwords } from './account/password.ts';
import { apiKeyRpc } from './api-key/api-key.rpc.ts';
import { createOwnedApplications } from './api-key/owned-applications.client.ts';
import { authenticationRpc } from './authentication/authentication.rpc.ts';
import type { IdentityConfig } from './config.ts';
import type { IdentityContext } from './context.ts';
import { migrations } from './db/migrations/index.ts';
import type { IdentityDatabase } from './db/schema.ts';
import { createEpochs } from './epoch/epoch.ts';
import { createListDeleted } from './restriction/deleted-application.client.ts';
import { createDeletionConsumer } from './restriction/deleted-application.consumer.ts';
import { createDeletionCatchUp } from './restriction/deletion-catch-up.ts';
import { createSessionSweeper } from './session/session-sweeper.ts';

/** The service, composed and not yet started. */
export interface IdentityService {
  readonly name: 'identity';
  readonly logger: Logger;
  readonly routes: readonly RpcRoute[];
  /** Brings the schema up to date; returns the names of the migrations applied. */
  migrate(): Promise<string[]>;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Rejects while the database does not answer. Redis may be away. */
  checkReady(): Promise<void>;
}

/** What the service is composed with. All but the transport has a default. */
export interface IdentityDeps {
  /** Reaches the apps service. */
  readonly appsTransport: Transport;
  readonly logger?: Logger;
  readonly clock?: () => Date;
  /** Cryptographically secure random bytes. */
  readonly random?: (bytes: number) => Buffer;
  /** Waits for so many milliseconds. */
  readonly wait?: (ms: number) => Promise<unknown>;
  readonly passwords?: Passwords;
}

const SCHEMA = 'identity';

/** How often deletions are looked for that no job told of. */
const LOOK_INTERVAL_MS = 30_000;

/** Composes the identity service. */
export function createIdentityService(config: IdentityConfig, deps: IdentityDeps): IdentityService {
  const logger = deps.logger ?? createLogger('identity', config.LOG_LEVEL);
  const clock = deps.clock ?? (() => new Date());
  const random = deps.random ?? randomBytes;
  const database = createDatabase<IdentityDatabase>({
    url: config.DATABASE_URL,
    schema: SCHEMA,
    poolMax: config.DATABASE_POOL_MAX,
    logger,
  });
  const redis = createFailFastRedis(config.REDIS_URL, logger);
  const ctx: IdentityContext = {
    db: database.db,
    pool: database.pool,
    epochs: createEpochs({ redis, random, logger, ...(deps.wait && { wait: deps.wait }) }),
    passwords: deps.passwords ?? createPasswords(passwordBounds(config)),
    sessionSweeper: createSessionSweeper(database.db, clock, logger),
    clock,
    random,
    logger,
    apiKeyPepper: deriveKey(config.SECRET_KEY, 'identity/api-key-pepper'),
    csrfKey: deriveKey(config.SECRET_KEY, 'identity/csrf'),
    signUp: config.SIGN_UP,
    activeApiKeysMax: config.ACTIVE_API_KEYS_LIMIT,
  };
  const deletions = createDeletionConsumer(ctx, config.REDIS_URL);
  const looks = createSweeper({
    intervalMs: LOOK_INTERVAL_MS,
    logger: logger.child({ sweep: 'deleted applications' }),
    sweeps: [createDeletionCatchUp(ctx, createListDeleted(deps.appsTransport))],
  });
  return {
    name: 'identity',
    logger,
    routes: [
      rpcRoute(AccountService, accountRpc(ctx)),
      rpcRoute(ApiKeyService, apiKeyRpc(ctx, createOwnedApplications(deps.appsTransport))),
      rpcRoute(AuthenticationService, authenticationRpc(ctx)),
    ],
    migrate: () => migrate(config.DATABASE_URL, SCHEMA, migrations),
    async start() {
      // First, so that a stop that comes while this waits has them to stop.
      deletions.start();
      looks.start();
      await connectInBackground(redis);
    },
    stop: () =>
      stopAll(
        // Both at once, as each may wait for a statement or for Redis until its time is up; before the database, which both use.
        () => Promise.all([deletions.stop(), looks.stop()]),
        () => ctx.sessionSweeper.idle(),
        () => redis.disconnect(),
        () => database.close(),
      ),
    checkReady: () => checkDatabase(database.pool),
  };
}

function passwordBounds(config: IdentityConfig) {
  return { atOnce: config.PASSWORD_HASHES_AT_ONCE, waitingMax: config.PASSWORD_HASHES_WAITING };
}
