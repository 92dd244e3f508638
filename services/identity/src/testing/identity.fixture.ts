import { type Client, createClient, createRouterTransport } from '@connectrpc/connect';
import type { DomainError } from '@latchkey/kit/errors';
import { fromConnectError } from '@latchkey/kit/errors';
import { createLogger } from '@latchkey/kit/logger';
import { createFailFastRedis, type Redis } from '@latchkey/kit/redis';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import pg from 'pg';
import { readIdentityConfig } from '../config.ts';
import { createIdentityService, type IdentityDeps, type IdentityService } from '../service.ts';
import { createFakeApps, type FakeApps } from './fake-apps.fixture.ts';
import { createTestClock, type TestClock } from './test-clock.ts';

/** The servers that a test file took from testkit. */
export interface TestServers {
  readonly databaseUrl: string;
  readonly redisUrl: string;
}

/** What an instance may have otherwise. */
export interface InstanceOptions extends Partial<Omit<IdentityDeps, 'appsTransport'>> {
  /** Environment variables that replace the usual ones. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The service through its RPC interface. */
export interface TestInstance {
  readonly service: IdentityService;
  readonly accounts: Client<typeof AccountService>;
  readonly apiKeys: Client<typeof ApiKeyService>;
  readonly authentication: Client<typeof AuthenticationService>;
  readonly oidc: Client<typeof OidcService>;
  readonly twoFactor: Client<typeof TwoFactorService>;
}

/** A started service and what stands around it. */
export interface TestIdentity extends TestInstance {
  readonly apps: FakeApps;
  readonly clock: TestClock;
  /** The database itself, with the service's schema as search path. */
  readonly db: pg.Pool;
  readonly redis: Redis;
  /** Starts another instance on the same servers; it stops with the first. */
  connect(options?: InstanceOptions): Promise<TestInstance>;
  stop(): Promise<void>;
}

const silent = createLogger('identity', 'silent');

/** Brings a database to the schema of the service. */
export async function migrateIdentity(databaseUrl: string): Promise<string[]> {
  const { service } = createInstance({ databaseUrl, redisUrl: 'redis://localhost' }, createFakeApps());
  return service.migrate().finally(service.stop);
}

/** Starts the service with a clock that stands until it is moved. */
export async function startTestIdentity(servers: TestServers): Promise<TestIdentity> {
  const apps = createFakeApps();
  const clock = createTestClock();
  const db = new pg.Pool({ connectionString: servers.databaseUrl, options: '-c search_path=identity', max: 4 });
  // A pool has forgotten its connections before they are closed, and a database that is dropped may end them first.
  db.on('connect', (client) => void client.on('error', () => undefined));
  const redis = createFailFastRedis(servers.redisUrl, silent);
  const services: IdentityService[] = [];
  const connect = async (options: InstanceOptions = {}) => {
    const instance = createInstance(servers, apps, { clock: clock.now, ...options });
    services.push(instance.service);
    await instance.service.start();
    return instance;
  };
  await redis.connect();
  return {
    ...(await connect()),
    apps,
    clock,
    db,
    redis,
    connect,
    async stop() {
      redis.disconnect();
      await Promise.all([db.end(), ...services.map((service) => service.stop())]);
    },
  };
}

function createInstance({ databaseUrl, redisUrl }: TestServers, apps: FakeApps, options: InstanceOptions = {}): TestInstance {
  const { env, ...deps } = options;
  const config = readIdentityConfig({
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    SECRET_KEY: 'test-secret-key-of-32-characters!',
    LOG_LEVEL: 'silent',
    ...env,
  });
  const appsTransport = createRouterTransport(({ service }) => void service(ApplicationService, apps.impl));
  const service = createIdentityService(config, { appsTransport, logger: silent, ...deps });
  const transport = createDirectTransport(service.routes, deps.logger ?? silent);
  return {
    service,
    accounts: createClient(AccountService, transport),
    apiKeys: createClient(ApiKeyService, transport),
    authentication: createClient(AuthenticationService, transport),
    oidc: createClient(OidcService, transport),
    twoFactor: createClient(TwoFactorService, transport),
  };
}

/** What a call was refused with. Throws when it succeeded, or failed with what is no error of the domain. */
export async function refusalOf(call: Promise<unknown>): Promise<Pick<DomainError, 'reason' | 'kind' | 'code' | 'message'>> {
  const err = await call.then(
    () => new Error('The call succeeded'),
    (reason: unknown) => reason,
  );
  const refusal = fromConnectError(err);
  if (!refusal) throw err;
  const { reason, kind, code, message } = refusal;
  return { reason, kind, code, message };
}

/** `done` for a call that succeeded, else the reason it was refused for. Throws as {@link refusalOf} does. */
export async function outcomeOf(call: Promise<unknown>): Promise<string> {
  const failed = await call.then(
    () => false,
    () => true,
  );
  return failed ? (await refusalOf(call)).reason : 'done';
}
