import { createClient } from '@connectrpc/connect';
import { createServiceTransport } from '@latchkey/kit/rpc/client/service-transport';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { outcomeOf } from './testing/identity.fixture.ts';
import { OPEN_KEY, present, someSignUp } from './testing/sample.fixture.ts';
import { type ServiceProcess, startProcess } from './testing/service-process.ts';

// Each test starts processes, one after the other.
vi.setConfig({ testTimeout: 60_000 });

const CREDENTIAL = 'service-credential-of-32-characters';

let database: TestDatabase;
let settings: Record<string, string>;
const started: ServiceProcess[] = [];

beforeAll(async () => {
  database = await createEmptyTestDatabase();
  settings = {
    DATABASE_URL: database.url,
    REDIS_URL: (await testRedis()).url,
    SECRET_KEY: 'test-secret-key-of-32-characters!',
    SERVICE_CREDENTIALS: CREDENTIAL,
    APPS_URL: 'http://127.0.0.1:1',
    HOST: '127.0.0.1',
    PORT: '0',
    GRPC_PORT: '0',
  };
});
afterEach(async () => {
  for (const { child, ended } of started.splice(0)) {
    child.kill('SIGKILL');
    await ended;
  }
});
afterAll(() => database.drop());

function run(env: Record<string, string>, ...args: string[]): ServiceProcess {
  const one = startProcess(env, ...args);
  started.push(one);
  return one;
}

test('all wrong settings are reported, without their values', async () => {
  const { ended } = run({
    DATABASE_URL: 'mysql://root:hunter2@localhost/identity',
    REDIS_URL: 'localhost:6379',
    SIGN_UP: 'maybe',
    ACTIVE_API_KEYS_LIMIT: '-1',
    SERVICE_CREDENTIALS: `${CREDENTIAL},${CREDENTIAL},${CREDENTIAL}`,
    APPS_URL: 'apps:8082',
    MIGRATE_ON_START: 'yes',
  });
  const { code, stdout, stderr } = await ended;
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr.trimEnd().split('\n')).toEqual([
    'Wrong settings:',
    expect.stringContaining('DATABASE_URL must be a URL'),
    expect.stringContaining('REDIS_URL must be a URL'),
    expect.stringContaining('SECRET_KEY is required'),
    expect.stringContaining('SIGN_UP must be open or closed'),
    expect.stringContaining('ACTIVE_API_KEYS_LIMIT must be a whole number'),
    expect.stringContaining('SERVICE_CREDENTIALS must hold one or two'),
    expect.stringContaining('MIGRATE_ON_START must be true or false'),
    expect.stringContaining('APPS_URL must be a URL'),
  ]);
  for (const value of ['hunter2', CREDENTIAL]) expect(stderr).not.toContain(value);
});

test('a process is not ready until another has migrated its schema, and then is without a restart', async () => {
  const empty = await createEmptyTestDatabase();
  onTestFinished(() => empty.drop());
  const own = { ...settings, DATABASE_URL: empty.url, MIGRATE_ON_START: 'false' };
  const { child, ended, logLine } = run(own);
  const { port } = await logLine('listening');
  const statusOf = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status;
  expect([await statusOf('/healthz'), await statusOf('/readyz')]).toEqual([200, 503]);
  const upToDate = logLine('the schema is up to date');
  expect((await run(own, 'migrate').ended).code).toBe(0);
  expect(await statusOf('/readyz')).toBe(200);
  await upToDate;
  child.kill('SIGTERM');
  const { code, stdout, stderr } = await ended;
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).not.toContain('does not exist');
});

test('a process answers calls over the network, is unavailable where apps is, and ends well on SIGTERM', async () => {
  const { child, ended, logLine } = run(settings);
  const { port } = await logLine('listening');
  const baseUrl = `http://127.0.0.1:${port}`;
  const transport = createServiceTransport(baseUrl, CREDENTIAL);
  const { account } = await createClient(AccountService, transport).signUp(someSignUp());
  const settingsOfKey = { ...OPEN_KEY, accountId: present(account).id };
  const apiKeys = createClient(ApiKeyService, transport);
  expect(await outcomeOf(apiKeys.createApiKey(settingsOfKey))).toBe('done');
  const restricted = { ...settingsOfKey, allApplications: false, applicationIds: [present(account).id] };
  expect(await outcomeOf(apiKeys.createApiKey(restricted))).toBe('dependency_unavailable');
  expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200);
  await transport.close();
  child.kill('SIGTERM');
  expect(await ended).toMatchObject({ code: 0, stderr: '' });
});
