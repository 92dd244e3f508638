import { randomUUID } from 'node:crypto';
import { Code, createClient } from '@connectrpc/connect';
import { createServiceTransport } from '@latchkey/kit/rpc/client/service-transport';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { withClient } from '@latchkey/testkit/with-client';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { waitersForLocks } from './testing/rows.ts';
import { runMain, type ServiceProcess } from './testing/service-process.ts';
import { openPool, SECRET_KEY } from './testing/test-apps.ts';

// Each test starts processes, one after the other.
vi.setConfig({ testTimeout: 60_000 });

const CREDENTIAL = 'service-credential-of-32-characters';
const MIGRATIONS = [
  '20261120-180000-applications',
  '20261120-220000-event-delivery',
  '20261121-060000-audit-log',
  '20261121-070000-event-origin',
];

let redisUrl: string;
beforeAll(async () => {
  redisUrl = (await testRedis()).url;
});

const cleanUps: Array<() => unknown> = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createEmptyTestDatabase();
  cleanUps.push(() => database.drop());
  return database;
}

function run(env: Readonly<Record<string, string>>, ...args: string[]): ServiceProcess {
  const started = runMain(env, ...args);
  cleanUps.push(async () => {
    started.child.kill('SIGKILL');
    await started.ended;
  });
  return started;
}

const settings = (url: string) => ({
  DATABASE_URL: url,
  REDIS_URL: redisUrl,
  SECRET_KEY,
  SERVICE_CREDENTIALS: CREDENTIAL,
  HOST: '127.0.0.1',
  PORT: '0',
  GRPC_PORT: '0',
});

describe('wrong settings', () => {
  it('are all reported at once on standard error, without their values, and end the process', async () => {
    const { ended } = run({
      DATABASE_URL: 'mysql://root:hunter2@localhost/apps',
      REDIS_URL: 'localhost:6379',
      SECRET_KEY: 'short-secret',
      SERVICE_CREDENTIALS: `${CREDENTIAL},${CREDENTIAL},${CREDENTIAL}`,
      PORT: '80a',
      GRPC_PORT: '65536',
      DATABASE_POOL_MAX: '0',
      RUNTIME_KEY_ROTATIONS_PER_HOUR: '-1',
      EVENT_RETENTION_HOURS: '0',
      LOG_LEVEL: 'loud',
      MIGRATE_ON_START: 'yes',
    });
    const { code, stdout, stderr } = await ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.split('\n')).toEqual([
      'Wrong settings:',
      expect.stringContaining('DATABASE_URL must be a URL that starts with postgres:// or postgresql://'),
      expect.stringContaining('DATABASE_POOL_MAX must be a whole number from 1 to 1000'),
      expect.stringContaining('REDIS_URL must be a URL that starts with redis:// or rediss://'),
      expect.stringContaining('SECRET_KEY must have at least 32 characters'),
      expect.stringContaining('RUNTIME_KEY_ROTATIONS_PER_HOUR must be a whole number from 0 to 10000'),
      expect.stringContaining('EVENT_RETENTION_HOURS must be a whole number from 1 to 8760'),
      expect.stringContaining('LOG_LEVEL must be one of'),
      expect.stringContaining('PORT must be a whole number from 0 to 65535'),
      expect.stringContaining('GRPC_PORT must be a whole number from 0 to 65535'),
      expect.stringContaining('SERVICE_CREDENTIALS must hold one or two credentials'),
      expect.stringContaining('MIGRATE_ON_START must be true or false'),
      '',
    ]);
    for (const value of ['hunter2', 'short-secret', CREDENTIAL]) expect(stderr).not.toContain(value);
  });
});

/** Levels and messages of the lines that are more than ordinary. */
function warnings(stdout: string): Array<[level: number, msg: string]> {
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line)).flatMap(({ level, msg }) => (level >= 40 ? [[level, msg]] : []));
}

describe('migrations', () => {
  const applied = async (url: string) => {
    const { rows } = await withClient(url, (client) => client.query('select name from apps.kysely_migration order by name'));
    return rows.map(({ name }) => name);
  };

  it('are applied once by processes that migrate at the same time, and once only', async () => {
    const { url } = await emptyDatabase();
    const endings = await Promise.all([1, 2, 3].map(() => run({ DATABASE_URL: url }, 'migrate').ended));
    expect(endings.map(({ code, stderr }) => [code, stderr])).toEqual(Array(3).fill([0, '']));
    expect(endings.map(({ stdout }) => stdout).toSorted()).toEqual([
      `Applied ${MIGRATIONS.join(', ')}.\n`,
      'The schema is up to date.\n',
      'The schema is up to date.\n',
    ]);
    expect(await applied(url)).toEqual(MIGRATIONS);
  });

  it('that can’t use the database end the process with a line of the log', async () => {
    const url = new URL((await emptyDatabase()).url);
    url.pathname = '/no_such_database';
    const { code, stdout, stderr } = await run({ DATABASE_URL: url.href }, 'migrate').ended;
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ level: 60, service: 'apps', msg: 'migration failed' });
  });
});

describe('the process', () => {
  let url: string;
  beforeAll(async () => {
    const database = await createEmptyTestDatabase();
    url = database.url;
    return () => database.drop();
  });

  async function start(overrides: Readonly<Record<string, string>> = {}) {
    const started = run({ ...settings(url), ...overrides });
    const { port } = await started.logLine('listening');
    const baseUrl = `http://127.0.0.1:${port}`;
    const transport = createServiceTransport(baseUrl, CREDENTIAL);
    cleanUps.push(() => transport.close());
    return { ...started, baseUrl, client: createClient(ApplicationService, transport) };
  }

  it('migrates, answers calls over the network, and ends well on SIGTERM', async () => {
    const { child, ended, client, baseUrl } = await start();
    const accountId = randomUUID();
    const { applicationId } = await client.createApplication({ accountId, name: 'Über application' });
    const { applications } = await client.listApplications({ accountId });
    expect(applications.map(({ id, name }) => [id, name])).toEqual([[applicationId, 'Über application']]);
    expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  });

  it('finishes the call under way on SIGTERM while it takes no new connection', async () => {
    const { child, ended, client, baseUrl } = await start();
    const accountId = randomUUID();
    const { applicationId } = await client.createApplication({ accountId, name: 'Application' });
    const db = openPool(url);
    cleanUps.push(() => db.end());
    const holder = await db.connect();
    await holder.query('begin');
    await holder.query('select 1 from application where id = $1 for update', [applicationId]);
    const call = client.deleteApplication({ accountId, applicationId });
    await waitersForLocks(db, 1);
    child.kill('SIGTERM');
    await eventually(() =>
      fetch(`${baseUrl}/healthz`).then(
        () => false,
        () => true,
      ),
    );
    await holder.query('commit');
    holder.release();
    await call;
    expect(await ended).toMatchObject({ code: 0, signal: null });
    const { rows } = await db.query('select 1 from application where id = $1', [applicationId]);
    expect(rows).toEqual([]);
  });

  it('is not ready until another process has migrated its schema, and then is without a restart', async () => {
    const own = { DATABASE_URL: (await emptyDatabase()).url, MIGRATE_ON_START: 'false' };
    const { child, ended, client, baseUrl, logLine } = await start(own);
    const statusOf = async (path: string) => (await fetch(`${baseUrl}${path}`)).status;
    expect([await statusOf('/healthz'), await statusOf('/readyz')]).toEqual([200, 503]);
    for (let i = 0; i < 2; i += 1)
      await expect(client.listDeletedApplications({})).rejects.toMatchObject({ code: Code.Unavailable });
    expect((await run({ ...settings(url), ...own }, 'migrate').ended).code).toBe(0);
    expect(await statusOf('/readyz')).toBe(200);
    expect((await client.createApplication({ accountId: randomUUID(), name: 'Application' })).applicationId).not.toBe('');
    await logLine('the schema is up to date');
    child.kill('SIGTERM');
    const { code, stdout } = await ended;
    expect(code).toBe(0);
    // An ordinary moment of a first rollout: each thing is said, no defect is made of it, and what waits does not complain.
    expect(warnings(stdout)).toEqual([
      [40, 'the schema is not up to date: background work waits for its migration'],
      [40, 'not ready'],
      [40, 'rpc refused'],
      [40, 'rpc refused'],
    ]);
  });

  it('is not ready where the schema that came after its start was written with another SECRET_KEY', async () => {
    const { url: ownUrl } = await emptyDatabase();
    const { baseUrl, logLine } = await start({ DATABASE_URL: ownUrl, MIGRATE_ON_START: 'false' });
    const other = await start({ DATABASE_URL: ownUrl, SECRET_KEY: 'other-secret-key-of-32-characters' });
    await other.client.createApplication({ accountId: randomUUID(), name: 'Application' });
    expect([(await fetch(`${other.baseUrl}/readyz`)).status, (await fetch(`${baseUrl}/readyz`)).status]).toEqual([200, 503]);
    expect(await logLine('not ready')).toMatchObject({ err: { message: expect.stringContaining('SECRET_KEY is not the one') } });
  });
});
