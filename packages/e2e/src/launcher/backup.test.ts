import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { migrations } from '@latchkey/files/db/migrations';
import { migrate } from '@latchkey/kit/database/migrate';
import { backUp, stopWithoutDeletions } from '@latchkey/launcher/backup/backup';
import type { BackupTarget } from '@latchkey/launcher/backup/backup-command';
import { readManifest, verifyManifest, writeManifest } from '@latchkey/launcher/backup/manifest';
import { createObjectSnapshot } from '@latchkey/launcher/backup/object-snapshot';
import { restore } from '@latchkey/launcher/backup/restore';
import { openDatabase } from '@latchkey/launcher/open-database';
import { ROOT } from '@latchkey/launcher/program';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { Client } from 'pg';
import { create } from 'tar';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { Api } from '../client/api.ts';
import { createApplication, signUp } from '../client/caller.ts';
import { ACTION, upload } from '../client/files.ts';
import { GENEROUS_LIMITS } from '../instance/instance.ts';
import { createDataDir, startLauncher } from '../instance/launcher-process.ts';

let dir: string;
let removeDir: () => Promise<void>;
beforeEach(async () => {
  ({ path: dir, remove: removeDir } = await createDataDir());
});
afterEach(() => removeDir());

/** Runs a command in this process. */
async function run(
  command: (target: BackupTarget) => Promise<void>,
  dataDir: string,
  path: string,
  note = (_line: string): void => {},
): Promise<void> {
  const stops = new AsyncDisposableStack();
  const objectsDir = join(dataDir, 'files');
  await command({ path, dataDir, objectsDir, note, stops }).finally(() => stops.disposeAsync());
}

/** Names and checksums of the files in the database of a stopped Latchkey. */
async function readRows(dataDir: string): Promise<string[]> {
  const { url, close } = await openDatabase(dataDir, 'files', 'a test', () => {});
  const { rows } = await withClient(url, (client) => client.query('select display_name, checksum from files.file'));
  await close();
  return rows.map(({ display_name, checksum }) => `${display_name} ${checksum.toString('hex')}`).sort();
}

it('a backup of a running Latchkey restores to one moment, and is the only one that runs', { timeout: 120_000 }, async () => {
  const [source, path, restored] = [join(dir, 'source'), join(dir, 'backup.tar'), join(dir, 'restored')];
  const env = { DATA_DIR: source, PORT: '0', REALTIME_PORT: '0', HOST: '127.0.0.1', ...GENEROUS_LIMITS };
  const launcher = await startLauncher(env);
  const { session } = await signUp(new Api(await launcher.running));
  const app = await createApplication(session);
  await upload(session, app, 'kept');
  const traffic = new AbortController();
  const changing = changeFiles(session, app, traffic.signal);
  let another: Promise<void> | undefined;
  await run(backUp, source, path, (line) => {
    if (!line.includes('Copying the database: ')) return;
    another ??= expect(run(backUp, source, `${path}-2`)).rejects.toThrow('Another backup of this database is running');
  });
  expect(another).toBeDefined();
  await another;
  traffic.abort();
  await changing;
  await launcher.stop();
  expect(await readdir(join(source, 'files'))).toEqual(['objects', 'tmp']);
  expect((await stat(path)).mode & 0o777).toBe(0o600);

  // Compares each row with its object, checksums included.
  await run(restore, restored, path);
  const rows = await readRows(restored);
  expect(rows).toContainEqual(expect.stringMatching(/^kept /));
  expect(rows.length).toBeLessThanOrEqual(3);
  for (const name of ['secrets.json', 'postgres/credentials.json']) {
    expect(await readFile(join(restored, name), 'utf8')).toBe(await readFile(join(source, name), 'utf8'));
  }
});

/** Uploads and deletes files until the signal, at a pace that leaves time for the backup. */
async function changeFiles(session: Api, applicationId: string, signal: AbortSignal): Promise<void> {
  let previous: string | undefined;
  for (let i = 0; !signal.aborted; i += 1) {
    const { data } = await upload(session, applicationId, `f${i}`);
    if (previous !== undefined) await session.post(ACTION, { action: 'delete_file', fileId: previous }, { applicationId });
    previous = data.id;
    await delay(100);
  }
}

it('a backup is rejected when a file of it was changed, is missing or was added', async () => {
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

it('a file that is not an archive, or a .tar file that ends early, is rejected', async () => {
  const [backup, path, restored] = [join(dir, 'backup'), join(dir, 'backup.tar'), join(dir, 'restored')];
  const pack = () => create({ file: path, cwd: backup, portable: true }, ['manifest.json', 'files']);
  await mkdir(join(backup, 'files'), { recursive: true });
  // The last file ends in blocks of zeros, as the archive itself does.
  for (const name of ['a', 'b']) await writeFile(join(backup, 'files', name), Buffer.alloc(1_024));
  await writeManifest(backup, () => {});
  await pack();
  const { size } = await stat(path);
  for (const left of [...Array(size / 512).keys()].flatMap((blocks) => [blocks * 512, blocks * 512 + 100])) {
    await pack();
    await truncate(path, left);
    await expect(run(restore, restored, path), `${left} of ${size} bytes`).rejects.toThrow("backup.tar can't be unpacked");
    expect(await readdir(dir)).toEqual(['backup', 'backup.tar']);
  }
  // Longer than what is read at a time.
  await writeFile(path, 'no archive'.repeat(100_000));
  await expect(run(restore, restored, path)).rejects.toThrow("backup.tar can't be unpacked");
  expect(await readdir(dir)).toEqual(['backup', 'backup.tar']);
  // The whole archive is unpacked, and lacks only the database.
  await pack();
  await expect(run(restore, restored, path)).rejects.toThrow('postgres');
});

it('no deletion commits while a backup ends, and an object in the snapshot outlives its deletion', async () => {
  const database = await createEmptyTestDatabase();
  onTestFinished(() => database.drop());
  await migrate(database.url, 'files', migrations);
  const [admin, deleter] = [new Client(database.url), new Client(`${database.url}?options=-c%20lock_timeout%3D100`)];
  for (const client of [admin, deleter]) {
    await client.connect();
    onTestFinished(() => client.end());
  }
  const [application, file] = [randomUUID(), randomUUID()];
  const object = join(dir, 'objects', application, file);
  await mkdir(join(dir, 'objects', application, 'foreign'), { recursive: true });
  await writeFile(join(dir, 'objects', 'foreign'), '');
  const snapshot = await createObjectSnapshot(dir);
  const deletion = () => deleter.query(`insert into files.object_deletion (object_key) values ('${application}/${file}')`);
  await stopWithoutDeletions(admin, snapshot, async () => {
    // Committed after the folder was first listed, before the moment of the backup.
    await writeFile(object, 'bytes');
    await expect(deletion()).rejects.toMatchObject({ code: '55P03' });
  });
  await deletion();
  await rm(object);
  expect([...snapshot.keys()]).toEqual([`${application}/${file}`]);
  expect((await stat(snapshot.pathOf(`${application}/${file}`))).size).toBe(5);
});

it('the commands reject unsupported data and change nothing', { timeout: 60_000 }, async () => {
  await expect(run(backUp, dir, join(dir, 'backup'))).rejects.toThrow('no database in');
  await expect(run(restore, join(dir, 'new'), join(dir, 'backup'))).rejects.toThrow('no backup at');
  await expect(run(restore, join(dir, 'new'), dir)).rejects.toThrow('no manifest.json');
  await writeFile(join(dir, 'file'), '');
  await expect(run(backUp, dir, join(dir, 'file'))).rejects.toThrow('file exists already');
  await expect(run(restore, dir, dir)).rejects.toThrow('is not empty');
  const env = { ...programEnv(), DATA_DIR: dir, DATABASE_URL: 'postgres://elsewhere/latchkey' };
  const args = [`${ROOT}packages/launcher/src/latchkey-cli.ts`, 'admin', 'backup', join(dir, 'backup')];
  const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  expect([status, stderr]).toEqual([1, expect.stringContaining('docs/backup.md')]);
  expect(await readdir(dir)).toEqual(['file']);
});
