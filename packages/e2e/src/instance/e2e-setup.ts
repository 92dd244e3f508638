import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startMailServer } from '@latchkey/identity/testing/mail-server';
import { TEST_ROLE } from '@latchkey/testkit/postgres/test-role';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import setUpServers from '@latchkey/testkit/vitest/global-setup';
import type { TestServers } from '@latchkey/testkit/vitest/test-servers';
import type { TestProject } from 'vitest/node';
import { startOtlpReceiver } from '../fakes/otlp-receiver.ts';
import { type Shape, startInstance } from './instance.ts';
import './shared-instance.ts';

/** Starts the instance that the tests of one shape share, of the project `e2e-<shape>`. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const shape = project.name.replace(/^e2e-/, '') as Shape;
  const releaseServers = await setUpServers(project);
  const servers = project.getProvidedContext().latchkeyTestServers;
  const database = await createDatabase(servers);
  const receiver = await startOtlpReceiver();
  const mailDir = await mkdtemp(join(tmpdir(), 'latchkey-mail-'));
  const mailServer = await startMailServer((mail) => void writeFile(join(mailDir, randomUUID()), JSON.stringify(mail)));
  const release = async () => {
    receiver.close();
    await mailServer.stop();
    await rm(mailDir, { recursive: true });
    await database.drop();
    await releaseServers();
  };
  // The tests' own databases are counted from the other end.
  const redisUrl = `${servers.redisUrl}/${servers.redisDatabases - (shape === 'deployed' ? 1 : 2)}`;
  // Traces of one process would cost time alone.
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: '300', LOG_LEVEL: 'debug' };
  const env = { ...mailServer.env, ...(shape === 'deployed' && traces) };
  const instance = await startInstance({ shape, databaseUrl: database.url, redisUrl, env }).catch(async (err: unknown) => {
    await release();
    throw err;
  });
  const { baseUrl, port, realtimeUrl, logDir, objectsDir } = instance;
  const tracesUrl = receiver.url;
  project.provide('latchkeyInstance', { shape, baseUrl, port, realtimeUrl, logDir, objectsDir, tracesUrl, mailDir });
  return async () => {
    await instance.stop();
    await release();
  };
}

/** Not one of the tests' databases, which are removed when tests are run again in watch mode. */
async function createDatabase({ postgresUrl, testRolePassword }: TestServers) {
  const name = `e2e_${randomBytes(8).toString('hex')}`;
  await withClient(postgresUrl, (client) => client.query(`CREATE DATABASE ${name} OWNER ${TEST_ROLE}`));
  const url = new URL(postgresUrl);
  url.username = TEST_ROLE;
  url.password = testRolePassword;
  url.pathname = `/${name}`;
  const drop = () => withClient(postgresUrl, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
  return { url: url.href, drop };
}
