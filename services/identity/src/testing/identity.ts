import { createHash } from 'node:crypto';
import { createClient, createRouterTransport } from '@connectrpc/connect';
import { createLogger } from '@latchkey/kit/log/logger';
import { createFailFastRedis } from '@latchkey/kit/redis/redis';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { CredentialService } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { TrustedIssuerService } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import { createTestDatabase } from '@latchkey/testkit/postgres/database';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { refusalOf } from '@latchkey/testkit/refusal';
import { createTestClock } from '@latchkey/testkit/values/test-clock';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { afterAll } from 'vitest';
import { createPasswords, type Passwords } from '../account/password.ts';
import { createEpochs } from '../authentication/principal-epoch.ts';
import { readIdentityConfig } from '../config.ts';
import { createIdentityService, type IdentityDeps, type IdentityService } from '../service.ts';
import { createFakeApps, type FakeApps } from './fake-apps.ts';

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const DAY_MS = 1_440 * MINUTE_MS;

export interface InstanceOptions extends Partial<Omit<IdentityDeps, 'appsTransport'>> {
  /** Environment variables that replace the default ones. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The service through its RPC interface. */
export type TestInstance = ReturnType<typeof createInstance>;

/** A service with its database and dependencies. */
export type TestIdentity = Awaited<ReturnType<typeof openTestIdentity>>;

const silent = createLogger('identity', 'silent');
const ENV = { REDIS_URL: 'redis://localhost', SECRET_KEY: 'test-secret-key-of-32-characters!', LOG_LEVEL: 'silent' };

/** Migrates a database to the schema of the service. */
export async function migrateIdentity(databaseUrl: string): Promise<string[]> {
  const { service } = createInstance({ ...ENV, DATABASE_URL: databaseUrl }, createFakeApps());
  return service.migrate().finally(service.stop);
}

/**
 * Opens the service on a new database until the tests of the file end. It is not started:
 * background work would add statements to those that tests count.
 */
export async function openTestIdentity(ownEnv: Readonly<Record<string, string>> = {}) {
  const database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  const { REDIS_URL: redisUrl = (await testRedis()).url } = ownEnv;
  const env: Readonly<Record<string, string>> = { ...ENV, DATABASE_URL: database.url, ...ownEnv, REDIS_URL: redisUrl };
  const apps = createFakeApps();
  const clock = createTestClock();
  /** The database, with the service's schema as search path. */
  const db = new pg.Pool({ connectionString: database.url, options: '-c search_path=identity', max: 4 });
  // Dropping the database may end connections that the pool has already forgotten.
  db.on('connect', (client) => void client.on('error', () => undefined));
  /** The database as the service's jobs have it. */
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: db }) });
  const redis = createFailFastRedis(redisUrl, silent);
  const services: IdentityService[] = [];
  await redis.connect();
  const shared = { clock: clock.now, passwords: createTestPasswords() };
  const epochs = createEpochs(redis, silent);
  /** Opens another instance on the same servers; it stops with the first. */
  const connect = ({ env: more, ...deps }: InstanceOptions = {}) => {
    const own = { ...shared, ...(more?.REDIS_URL === undefined && { epochs }), ...deps };
    const instance = createInstance({ ...env, ...more }, apps, own);
    services.push(instance.service);
    return instance;
  };
  afterAll(async () => {
    redis.disconnect();
    await Promise.all([db.end(), ...services.map((service) => service.stop())]);
    await database.drop();
  });
  return { ...connect(), env, apps, clock, db, kysely, redis, connect };
}

function createInstance(env: Readonly<Record<string, string>>, apps: FakeApps, deps: Partial<IdentityDeps> = {}) {
  const appsTransport = createRouterTransport(({ service }) => void service(ApplicationService, apps.impl));
  const service = createIdentityService(readIdentityConfig(env), { appsTransport, logger: silent, ...deps });
  const transport = createDirectTransport(service.routes, deps.logger ?? silent);
  return {
    service,
    accounts: createClient(AccountService, transport),
    apiKeys: createClient(ApiKeyService, transport),
    authentication: createClient(AuthenticationService, transport),
    credentials: createClient(CredentialService, transport),
    oidc: createClient(OidcService, transport),
    trustedIssuers: createClient(TrustedIssuerService, transport),
    twoFactor: createClient(TwoFactorService, transport),
  };
}

/** `done` for a call that succeeded, else the reason of its error. */
export async function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'done',
    async () => (await refusalOf(call)).reason ?? 'masked',
  );
}

/** Passwords at no cost, counting the verified ones: argon2id takes most of the time of tests. */
export function createTestPasswords(): Passwords & { verified: number } {
  const real = createPasswords();
  const hash = async (password: string) => createHash('sha256').update(password).digest('hex');
  const passwords = {
    hash,
    verified: 0,
    async verify(stored: string | undefined, password: string) {
      passwords.verified += 1;
      // Operator commands store hashes of argon2id.
      return stored?.startsWith('$argon2id$') ? real.verify(stored, password) : stored === (await hash(password));
    },
  };
  return passwords;
}
