import { spawn } from 'node:child_process';
import { mkdir, readdir, rename, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { acquireDataDirLock } from '@latchkey/embedded/data-dir-lock';
import { type EmbeddedPostgres, startPostgres } from '@latchkey/embedded/postgres';
import { ensureServiceDatabases } from '@latchkey/embedded/service-databases';
import { migrations } from '@latchkey/files/db/migrations/index';
import { migrate } from '@latchkey/kit/database/migrate';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/program-env';
import { withClient } from '@latchkey/testkit/with-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDataDir } from './testing/launched.ts';
import { processesOn } from './testing/processes-on.ts';

const MAIN = fileURLToPath(new URL('check-files-main.ts', import.meta.url));
const APPLICATION = '0199c0de-0000-7000-8000-000000000001';
const FILE = '0199c0de-0000-7000-8000-000000000002';
const STARTS = 'Latchkey does not run: starting its PostgreSQL for the check.\n';

let dir: Awaited<ReturnType<typeof createDataDir>>;
const cleanUps: Array<() => unknown> = [];
beforeEach(async () => {
  dir = await createDataDir();
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await eventually(() => processesOn(dir.path).length === 0, { timeoutMs: 20_000 });
  await dir.remove();
});

/** Runs the command with these settings and no others. */
function run(env: NodeJS.ProcessEnv, ...args: string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...programEnv(), HOME: process.env.HOME, DATA_DIR: dir.path, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  cleanUps.push(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, ended, stdout: () => stdout };
}

/** The data folder of a Latchkey with one file, whose object is not there; its PostgreSQL runs. */
async function setUp(): Promise<EmbeddedPostgres> {
  const postgres = await startPostgres({ dataDir: dir.path, durable: false });
  cleanUps.push(() => postgres.stop());
  const { files } = await ensureServiceDatabases(postgres, ['files']);
  await addFile(files);
  return postgres;
}

async function addFile(url: string): Promise<void> {
  await migrate(url, 'files', migrations);
  await withClient(url, async (client) => {
    await client.query('set search_path = files');
    await client.query(
      `insert into file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
       values ($1, $2, $2, 'setup', 7, sha256('content'), 'text/plain', now())`,
      [FILE, APPLICATION],
    );
    await client.query('insert into application_usage values ($1, $1, 1, 1)', [APPLICATION]);
  });
}

async function addObject(): Promise<void> {
  const folder = join(dir.path, 'files', 'objects', APPLICATION);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, FILE), 'content');
}

describe.runIf(process.platform === 'linux')('npm run check-files', { timeout: 60_000 }, () => {
  it('uses the PostgreSQL of a Latchkey that runs, and leaves it alone', async () => {
    const lock = await acquireDataDirLock(dir.path);
    const postgres = await setUp();
    expect(await run({}).ended).toMatchObject({ code: 1, stdout: expect.stringContaining(`missing object      file ${FILE}`) });
    await addObject();
    const { code, stdout, stderr } = await run({}).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(
      `the database 127.0.0.1:${postgres.port}/latchkey with the folder ${join(dir.path, 'files')}.\nChecked 1 file, 1 object`,
    );
    expect(processesOn(dir.path)).toEqual([['postgres', postgres.pid]]);
    await lock.release();
  });

  it('starts the PostgreSQL of a Latchkey that does not run, and stops it after', async () => {
    const postgres = await setUp();
    await postgres.stop();
    await addObject();
    const { code, stdout, stderr } = await run({}).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: STARTS });
    expect(stdout).toContain('Checked 1 file, 1 object');
    expect(processesOn(dir.path)).toEqual([]);
    expect(await readdir(dir.path)).not.toContain('launcher.lock');
  });

  it('stops it also when it is interrupted', async () => {
    const postgres = await setUp();
    await postgres.stop();
    await addObject();
    // With holes only, and too long to be read before the signal.
    await truncate(join(dir.path, 'files', 'objects', APPLICATION, FILE), 64 * 1024 ** 3);
    const { child, ended, stdout } = run({});
    await eventually(() => stdout().startsWith('Comparing'), { timeoutMs: 20_000 });
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, stderr: STARTS });
    expect(processesOn(dir.path)).toEqual([]);
  });

  it('mends', async () => {
    await (await setUp()).stop();
    // A store without any object looks like another folder.
    expect(await run({}, '--mend').ended).toMatchObject({ code: 1, stdout: expect.stringContaining('Nothing was mended') });
    const forced = await run({}, '--mend', '--force').ended;
    expect(forced).toMatchObject({ code: 0, stdout: expect.stringContaining('Mended 1; 0 left.') });
    expect(await run({}).ended).toMatchObject({ code: 0, stdout: expect.stringContaining('Checked 0 files') });
  });

  it('uses the database that DATABASE_URL names', async () => {
    const database = await createEmptyTestDatabase();
    cleanUps.push(() => database.drop());
    await addFile(database.url);
    await addObject();
    expect(await run({ DATABASE_URL: database.url }).ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('looks into the folder that OBJECTS_DIR names', async () => {
    await setUp();
    await addObject();
    const elsewhere = join(dir.path, 'elsewhere');
    await rename(join(dir.path, 'files'), elsewhere);
    expect((await run({ OBJECTS_DIR: elsewhere }).ended).code).toBe(0);
    expect((await run({}).ended).code).toBe(1);
  });

  it('says where there is no database, and makes none', async () => {
    const missing = join(dir.path, 'missing');
    for (const DATA_DIR of [dir.path, missing]) {
      const { code, stdout, stderr } = await run({ DATA_DIR }).ended;
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain(`There is no database in ${DATA_DIR}: set DATA_DIR or DATABASE_URL as for npm start.`);
    }
    expect(await readdir(dir.path)).toEqual([]);
  });

  it('says all that is wrong with the settings before it starts anything', async () => {
    await (await setUp()).stop();
    const { code, stderr } = await run({ OBJECT_STORE: 's3', S3_ACCESS_KEY_ID: 'hunter2' }).ended;
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'Wrong settings:\n  S3_BUCKET is required for OBJECT_STORE=s3\n  S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set both or not at all\n',
    });
  });

  it('shows how it is used', async () => {
    expect(await run({}, '--help').ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Usage: npm run check-files -- \[--mend\]/),
    });
  });
});
