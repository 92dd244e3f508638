import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { ServiceImpl } from '@connectrpc/connect';
import { createLogger } from '@latchkey/kit/log/logger';
import { createBodyClient } from '@latchkey/kit/rpc/client/body-client';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { startRpcServer } from '@latchkey/kit/rpc/server/server';
import { UploadAvatarResponseSchema } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { expect, it, onTestFinished } from 'vitest';
import { createFakeIdentity } from './testing/avatar/fake-identity.ts';
import { plainImage } from './testing/avatar/images.ts';
import { listening, runMain } from './testing/command.ts';
import { migrateFiles, SECRET_KEY } from './testing/test-files.ts';

const CREDENTIAL = 'service-credential-of-32-characters';
const identity = createFakeIdentity();

/** A service that another calls, on one port whatever credential it accepts. */
function createPeer() {
  let server: Awaited<ReturnType<typeof startRpcServer>> | undefined;
  onTestFinished(() => server?.stop());
  return async (credential: string) => {
    const port = server?.port ?? 0;
    await server?.stop();
    server = await startRpcServer({
      routes: [rpcRoute(AccountService, identity.impl as ServiceImpl<typeof AccountService>)],
      logger: createLogger('peer', 'silent'),
      credentials: [credential],
      checkReady: async () => undefined,
      host: '127.0.0.1',
      port,
      grpcPort: 0,
    });
    return `http://127.0.0.1:${server.port}`;
  };
}

it('the service and the avatar worker run as processes', { timeout: 60_000 }, async () => {
  const database = await createEmptyTestDatabase();
  const objectsDir = await mkdtemp(join(tmpdir(), 'latchkey-objects-'));
  onTestFinished(async () => {
    await database.drop();
    await rm(objectsDir, { recursive: true, force: true });
  });
  const [acceptAtApps, acceptAtIdentity] = [createPeer(), createPeer()];
  const [APPS_URL, IDENTITY_URL] = [await acceptAtApps('another'), await acceptAtIdentity(CREDENTIAL)];
  const settings = {
    ...{ DATABASE_URL: database.url, REDIS_URL: (await testRedis()).url, SECRET_KEY, OBJECTS_DIR: objectsDir },
    ...{ SERVICE_CREDENTIALS: CREDENTIAL, APPS_URL, IDENTITY_URL, HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0' },
    ...{ MIGRATE_ON_START: 'false', AVATAR_WORKER: 'apart' },
  };
  const [service, worker] = [runMain(settings), runMain(settings, 'avatar-worker')];
  const [baseUrl, workerUrl] = await Promise.all([listening(service), listening(worker)]);
  const statusOf = async (path: string) => (await fetch(baseUrl + path)).status;
  const ready = async () => [await statusOf('/readyz'), (await fetch(`${workerUrl}/readyz`)).status];

  expect([await statusOf('/healthz'), ...(await ready())], 'not ready before the migration').toEqual([200, 503, 503]);
  await migrateFiles(database.url);
  const becomes = (...statuses: number[]) => eventually(async () => expect(await ready()).toEqual(statuses));
  // Neither is ready while a service that it calls rejects its credential.
  await becomes(503, 200);
  await Promise.all([acceptAtApps(CREDENTIAL), acceptAtIdentity('another')]);
  await becomes(503, 503);
  await acceptAtIdentity(CREDENTIAL);
  await becomes(200, 200);

  const download = await fetch(`${baseUrl}/downloads/forged`, { headers: { 'x-request-id': 'mine' } });
  const notFound = { success: false, code: 'not_found', message: 'Not found' };
  expect([download.status, download.headers.get('x-request-id'), await download.json()]).toEqual([404, 'mine', notFound]);
  expect((await fetch(`${baseUrl}/downloads/forged`, { method: 'DELETE' })).status).toBe(405);
  expect((await fetch(`${baseUrl}/downloads/forged`)).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  const put = { method: 'PUT', body: 'x' };
  expect((await fetch(`${baseUrl}/uploads`, put)).status).toBe(401);
  const headers = { authorization: `Bearer ${CREDENTIAL}`, 'x-upload-ticket': 'forged' };
  expect((await fetch(`${baseUrl}/uploads`, { ...put, headers })).status).toBe(400);
  expect((await fetch(`${workerUrl}/avatars`, { ...put, headers })).status, 'the worker answers probes only').toBe(404);

  const accountId = randomUUID();
  const image = await plainImage(40, 40).png().toBuffer();
  const call = { path: '/avatars', headers: { 'x-account-id': accountId }, body: Readable.from([image]), byteSize: image.length };
  const client = createBodyClient(baseUrl, CREDENTIAL);
  const uploaded = await client.send({ ...call, requestId: 'request-1', timeoutMs: 15_000 }, UploadAvatarResponseSchema);
  expect(uploaded.avatarId).toBe(identity.avatarOf(accountId));

  for (const { child, ended } of [worker, service]) {
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  }
  expect(service.stdout()).not.toMatch(/\/downloads\/forged|does not exist/);
  const rejections = service
    .stdout()
    .split('\n')
    .filter((line) => line.includes('upload_ticket_invalid'));
  expect(rejections.map((line) => JSON.parse(line).level)).toEqual([30, 30]);
});
