import { spawn } from 'node:child_process';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { migrations } from '@latchkey/files/db/migrations/index';
import { migrate } from '@latchkey/kit/database/migrate';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { programEnv } from '@latchkey/testkit/program-env';
import { Client } from 'pg';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { stopWithoutDeletions } from './backup/backup.ts';
import { readManifest, verifyManifest, writeManifest } from './backup/manifest.ts';
import { createObjectSnapshot } from './backup/object-snapshot.ts';
import { Api } from './testing/api.ts';
import { cookieOf, createApplication, signUp } from './testing/caller.ts';
import { ACTION, listFiles, upload } from './testing/files.ts';
import { GENEROUS_LIMITS } from './testing/instance.ts';
import { createDataDir, type Launched, launch } from './testing/launched.ts';

let dir: string;
let removeDir: () => Promise<void>;
beforeEach(async () => {
  ({ path: dir, remove: removeDir } = await createDataDir());
});
afterEach(() => removeDir());

/** Runs `npm run backup` or `npm run restore` on a data folder. */
async function run(command: 'backup' | 'restore', dataDir: string, path: string, env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [join(import.meta.dirname, `${command}-main.ts`), path], {
    env: { ...programEnv(), HOME: process.env.HOME, DATA_DIR: dataDir, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stderr, code] = await Promise.all([text(child.stderr), ended]);
  return { code, stderr };
}

async function start(dataDir: string): Promise<{ api: Api; launched: Launched; stop: () => Promise<void> }> {
  const launched = launch({
    DATA_DIR: dataDir,
    PORT: '0',
    REALTIME_PORT: '0',
    HOST: '127.0.0.1',
    ...GENEROUS_LIMITS,
  });
  const stop = async () => {
    launched.signal('SIGTERM');
    await launched.exited;
  };
  onTestFinished(stop);
  return { api: new Api(await launched.running), launched, stop };
}

/** The name and checksum of each file, as a user sees them. */
async function listContent(api: Api, applicationId: string) {
  const files = await listFiles(api, applicationId);
  return files.map(({ displayName, checksum }) => `${displayName} ${checksum}`).sort();
}

it('a backup beside a running Latchkey restores to one moment', { timeout: 240_000 }, async () => {
  const [source, path, restored] = [join(dir, 'source'), join(dir, 'backup.tar'), join(dir, 'restored')];
  const { api, stop } = await start(source);
  const owner = await signUp(api);
  const app = await createApplication(owner.session);
  for (const name of ['one', 'two']) await upload(owner.session, app, name);
  const before = await listContent(owner.session, app);
  const traffic = new AbortController();
  const changing = changeFiles(owner.session, app, traffic.signal);
  const backup = await run('backup', source, path);
  traffic.abort();
  await changing;
  await stop();
  expect(backup).toMatchObject({ code: 0, stderr: expect.stringContaining('Nothing is wrong.') });
  expect(await readdir(join(source, 'files'))).toEqual(['objects', 'tmp']);

  expect(await run('restore', restored, path)).toMatchObject({ code: 0, stderr: expect.stringContaining('Nothing is wrong.') });
  const again = await start(restored);
  const { headers, data } = await again.api.post('/api/v1/auth/sign-in', { email: owner.email, password: owner.password });
  const session = again.api.with({ cookie: cookieOf(headers), 'x-csrf-token': data.csrfToken });
  expect(await listContent(session, app)).toEqual(expect.arrayContaining(before));
  await again.stop();
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

it('a backup is refused when a file of it was changed, is missing or was added', async () => {
  const backup = join(dir, 'backup');
  await mkdir(join(backup, 'files'), { recursive: true });
  for (const name of ['a', 'b']) await writeFile(join(backup, 'files', name), name);
  await writeManifest(backup, () => {});
  const verify = async () => verifyManifest(backup, await readManifest(backup), () => {});
  await verify();
  await writeFile(join(backup, 'files', 'a'), 'A');
  await expect(verify()).rejects.toThrow('files/a was changed');
  await rm(join(backup, 'files', 'a'));
  await expect(verify()).rejects.toThrow('files/a is missing');
  await writeFile(join(backup, 'files', 'c'), 'c');
  await expect(verify()).rejects.toThrow('files/c is not part of it');
});

/** Uploads and deletes files until the signal. */
async function changeFiles(session: Api, applicationId: string, signal: AbortSignal): Promise<void> {
  let previous: string | undefined;
  for (let i = 0; !signal.aborted; i += 1) {
    const { data } = await upload(session, applicationId, `f${i}`);
    if (previous !== undefined) await session.post(ACTION, { action: 'delete_file', fileId: previous }, { applicationId });
    previous = data.id;
  }
}

it('no deletion commits while a backup ends, and an object in the snapshot outlives its deletion', async () => {
  const database = await createEmptyTestDatabase();
  onTestFinished(() => database.drop());
  await migrate(database.url, 'files', migrations);
  const [admin, deleter] = [new Client(database.url), new Client(`${database.url}?options=-c%20lock_timeout%3D100`)];
  for (const client of [admin, deleter]) {
    await client.connect();
    onTestFinished(() => client.end());
  }
  const object = join(dir, 'objects', 'application', 'file');
  await mkdir(join(dir, 'objects', 'application'), { recursive: true });
  const snapshot = await createObjectSnapshot(dir);
  const deletion = () => deleter.query(`insert into files.object_deletion (object_key) values ('application/file')`);
  await stopWithoutDeletions(admin, snapshot, async () => {
    // Committed after the first look at the folder, before the moment of the backup.
    await writeFile(object, 'bytes');
    await expect(deletion()).rejects.toMatchObject({ code: '55P03' });
  });
  await deletion();
  await rm(object);
  const [[key, path] = ['', '']] = snapshot.list();
  expect([key, (await stat(path)).size]).toEqual(['application/file', 5]);
});

it('the commands refuse what they do not cover, and change nothing', async () => {
  const elsewhere = await run('backup', dir, join(dir, 'backup'), { DATABASE_URL: 'postgres://elsewhere/latchkey' });
  expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining('docs/backup.md') });
  expect(await run('backup', dir, join(dir, 'backup'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no database in'),
  });
  expect(await run('restore', join(dir, 'new'), join(dir, 'backup'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no backup at'),
  });
  await writeFile(join(dir, 'file'), '');
  expect((await run('backup', dir, join(dir, 'file'))).stderr).toMatch(/file exists already/);
  expect((await run('restore', dir, dir)).stderr).toMatch(/is not empty/);
  expect(await run('restore', join(dir, 'new'), dir)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no manifest.json'),
  });
  expect(await readdir(dir)).toEqual(['file']);
});
