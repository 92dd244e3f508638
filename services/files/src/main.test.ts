import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startHttpServer, startTestServer } from '@latchkey/kit/testing/servers';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Command, runMain } from './testing/command.ts';
import { storeFile } from './testing/stored-file.ts';
import { SECRET_KEY, startTestFiles } from './testing/test-files.ts';

let settings: Record<string, string>;
beforeAll(async () => {
  const database = await createEmptyTestDatabase();
  const objectsDir = await mkdtemp(join(tmpdir(), 'latchkey-objects-'));
  settings = {
    DATABASE_URL: database.url,
    REDIS_URL: (await testRedis()).url,
    SECRET_KEY,
    OBJECTS_DIR: objectsDir,
    SERVICE_CREDENTIALS: 'service-credential-of-32-characters',
    APPS_URL: 'http://127.0.0.1:1',
    IDENTITY_URL: 'http://127.0.0.1:1',
    HOST: '127.0.0.1',
    PORT: '0',
    GRPC_PORT: '0',
  };
  return async () => {
    await database.drop();
    await rm(objectsDir, { recursive: true, force: true });
  };
});

/** The base URL that the log tells of. */
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

describe('the process', { timeout: 30_000 }, () => {
  it('serves, downloads without a credential and the rest with one, and ends well on SIGTERM', async () => {
    const command = runMain(settings);
    const baseUrl = await listening(command);
    expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200);
    const download = await fetch(`${baseUrl}/downloads/forged`, { headers: { 'x-request-id': 'mine' } });
    expect([download.status, download.headers.get('x-request-id'), await download.json()]).toEqual([
      404,
      'mine',
      { success: false, code: 'not_found', message: 'Not found' },
    ]);
    expect((await fetch(`${baseUrl}/downloads/forged`, { method: 'DELETE' })).status).toBe(405);
    expect((await fetch(`${baseUrl}/downloads/forged`)).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect((await fetch(`${baseUrl}/uploads`, { method: 'PUT', body: 'x' })).status).toBe(401);
    const headers = { authorization: `Bearer ${settings.SERVICE_CREDENTIALS}`, 'x-upload-ticket': 'forged' };
    expect((await fetch(`${baseUrl}/uploads`, { method: 'PUT', body: 'x', headers })).status).toBe(400);
    command.child.kill('SIGTERM');
    expect(await command.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(command.stdout()).not.toContain('/downloads/forged');
    const lines = command.stdout().split('\n');
    const levels = lines.filter((line) => line.includes('upload_ticket_invalid')).map((line) => JSON.parse(line).level);
    expect(levels).toEqual([30, 30]);
  });

  it.each([
    ['the service', []],
    ['the worker', ['avatar-worker']],
  ])('is not ready until another has migrated its schema, and then is: %s', async (_title, args) => {
    const database = await createEmptyTestDatabase();
    const own = { ...settings, DATABASE_URL: database.url, MIGRATE_ON_START: 'false' };
    const command = runMain(own, ...args);
    const baseUrl = await listening(command);
    const statusOf = async (path: string) => (await fetch(`${baseUrl}${path}`)).status;
    expect([await statusOf('/healthz'), await statusOf('/readyz')]).toEqual([200, 503]);
    expect(await runMain(own, 'migrate').ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Applied .*-files/) });
    expect(await statusOf('/readyz')).toBe(200);
    await eventually(() => expect(command.stdout()).toContain('the schema is up to date"'));
    command.child.kill('SIGTERM');
    expect(await command.ended).toMatchObject({ code: 0 });
    expect(command.stdout()).not.toContain('does not exist');
    await database.drop();
  });

  it.each([
    ['the service', 'APPS_URL', []],
    ['the service', 'IDENTITY_URL', []],
    ['the worker', 'IDENTITY_URL', ['avatar-worker']],
  ])('is not ready while another rejects its credential: %s at %s', async (_title, urlName, args) => {
    const { url } = await startTestServer([], { credentials: ['another'] });
    const command = runMain({ ...settings, [urlName]: url }, ...args);
    const baseUrl = await listening(command);
    expect((await fetch(`${baseUrl}/readyz`)).status).toBe(503);
    await eventually(() => expect(command.stdout()).toContain(`${urlName.slice(0, -4).toLowerCase()} refuses the credential`));
  });

  it('does not take another folder for its store while the database has files, unless told that they are lost', async () => {
    const files = await startTestFiles();
    onTestFinished(() => files.stop());
    await storeFile(files, files.createOwned());
    const elsewhere = join(files.objectsDir, 'mistyped');
    const own = { ...settings, DATABASE_URL: files.url, OBJECTS_DIR: elsewhere };
    const sentence = `The database has files, and OBJECTS_DIR ${elsewhere} has none`;
    expect(await runMain(own).ended).toMatchObject({ code: 1, stdout: expect.stringContaining(sentence) });
    expect(await readdir(files.objectsDir)).not.toContain('mistyped');
    await mkdir(join(elsewhere, 'objects'), { recursive: true });
    await listening(runMain(own));
  });

  it('does not start with a bucket that the store rejects, and says what to do', async () => {
    const url = await startHttpServer((_req, res) => void res.writeHead(403).end());
    const s3 = { OBJECT_STORE: 's3', S3_BUCKET: 'uploads', S3_ENDPOINT: url, S3_FORCE_PATH_STYLE: 'true' };
    const keys = { S3_ACCESS_KEY_ID: 'the-id', S3_SECRET_ACCESS_KEY: 'the-secret' };
    const { code, stdout } = await runMain({ ...settings, ...s3, ...keys }).ended;
    expect(code).toBe(1);
    expect(stdout).toContain(`${url} denies access to S3 bucket \`uploads\`. Correct S3_ACCESS_KEY_ID`);
    expect(stdout).not.toMatch(/the-id|the-secret/);
  });

  it('does not start with wrong settings, and names all of them', async () => {
    const wrong = { OBJECTS_DIR: '', APPS_URL: 'x', S3_PUBLIC_ENDPOINT: 'localhost:7070', SECRET_KEY: 'short' };
    const { code, stderr } = await runMain({ ...settings, ...wrong }).ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/SECRET_KEY must have at least 32 characters/);
    expect(stderr).toMatch(/APPS_URL must be a URL that starts with http/);
    expect(stderr).toMatch(/S3_PUBLIC_ENDPOINT must be a URL that starts with http/);
    expect(stderr).not.toContain('short');
  });
});
