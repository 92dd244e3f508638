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
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeAll, describe, expect, it } from 'vitest';
import { createFakeIdentity } from '../testing/avatar/fake-identity.ts';
import { plainImage } from '../testing/avatar/images.ts';
import { type Command, runMain } from '../testing/command.ts';
import { SECRET_KEY } from '../testing/test-files.ts';

const CREDENTIAL = 'service-credential-of-32-characters';
const identity = createFakeIdentity();

let settings: Record<string, string>;
beforeAll(async () => {
  const database = await createEmptyTestDatabase();
  const objectsDir = await mkdtemp(join(tmpdir(), 'latchkey-objects-'));
  const server = await startRpcServer({
    routes: [rpcRoute(AccountService, identity.impl as ServiceImpl<typeof AccountService>)],
    logger: createLogger('identity', 'silent'),
    credentials: [CREDENTIAL],
    checkReady: async () => undefined,
    host: '127.0.0.1',
    port: 0,
    grpcPort: 0,
  });
  settings = {
    DATABASE_URL: database.url,
    REDIS_URL: (await testRedis()).url,
    SECRET_KEY,
    OBJECTS_DIR: objectsDir,
    SERVICE_CREDENTIALS: CREDENTIAL,
    APPS_URL: 'http://127.0.0.1:1',
    IDENTITY_URL: `http://127.0.0.1:${server.port}`,
    HOST: '127.0.0.1',
    PORT: '0',
    GRPC_PORT: '0',
  };
  return async () => {
    await server.stop();
    await database.drop();
    await rm(objectsDir, { recursive: true, force: true });
  };
});

function listening({ stdout, stderr }: Command): Promise<string> {
  return eventually(
    () => {
      const port = /"port":(\d+)[^\n]*"msg":"listening"/.exec(stdout())?.[1];
      if (port === undefined) throw new Error(`It does not listen: ${stdout()}${stderr()}`);
      return `http://127.0.0.1:${port}`;
    },
    { timeoutMs: 15_000 },
  );
}

async function upload(baseUrl: string, accountId: string): Promise<string> {
  const image = await plainImage(40, 40).png().toBuffer();
  const call = { path: '/avatars', headers: { 'x-account-id': accountId }, body: Readable.from([image]), byteSize: image.length };
  const client = createBodyClient(baseUrl, CREDENTIAL);
  return (await client.send({ ...call, requestId: 'request-1', timeoutMs: 15_000 }, UploadAvatarResponseSchema)).avatarId;
}

describe('the avatar worker as a process', { timeout: 40_000 }, () => {
  it('makes the avatars that the files service receives, answers probes only, and stops on SIGTERM', async () => {
    const service = runMain({ ...settings, AVATAR_WORKER: 'apart' });
    const worker = runMain(settings, 'avatar-worker');
    const [baseUrl, workerUrl] = await Promise.all([listening(service), listening(worker)]);
    expect((await fetch(`${workerUrl}/readyz`)).status).toBe(200);
    expect((await fetch(`${workerUrl}/avatars`, { method: 'PUT', body: 'x' })).status).not.toBe(200);
    const accountId = randomUUID();
    expect(await upload(baseUrl, accountId)).toBe(identity.avatarOf(accountId));
    worker.child.kill('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    service.child.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  });
});
