import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { acquireDataDirLock } from '@latchkey/embedded/data-dir-lock';
import { startPostgres } from '@latchkey/embedded/postgres';
import { startRedis } from '@latchkey/embedded/redis';
import { findServiceDatabase } from '@latchkey/embedded/running-postgres';
import { ensureServiceDatabases } from '@latchkey/embedded/service-databases';
import { migrations } from '@latchkey/files/db/migrations/index';
import { migrations as identityMigrations } from '@latchkey/identity/db/migrations/index';
import { migrate } from '@latchkey/kit/database/migrate';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/program-env';
import { withClient } from '@latchkey/testkit/with-client';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openAccountsTarget } from './accounts.ts';
import { openCheckTarget } from './check-files.ts';
import { ROOT } from './program.ts';
import { createDataDir } from './testing/launched.ts';
import { processesOn } from './testing/processes-on.ts';

const CACHE_DIR = `${ROOT}node_modules/.cache/latchkey`;
const SECRET_KEY = 'a-secret-key-of-the-tests-of-commands';
const APPLICATION = '0199c0de-0000-7000-8000-000000000001';
const FILE = '0199c0de-0000-7000-8000-000000000002';
const starts = (purpose: string) => `Latchkey does not run: starting its PostgreSQL for ${purpose}.`;

let dir: string;
let removeDir: () => Promise<void>;
/** Stops the servers of {@link startServers}. */
let stopServers: () => Promise<void>;
let redisUrl: string;
let databasePort: number;

/** Starts what a Latchkey that runs has: the lock of the folder, and its servers. */
async function startServers() {
  const lock = await acquireDataDirLock(dir);
  const [postgres, redis] = await Promise.all([
    startPostgres({ dataDir: dir, durable: false }),
    startRedis({ dataDir: dir, cacheDir: CACHE_DIR }),
  ]);
  redisUrl = redis.url;
  databasePort = postgres.port;
  stopServers = async () => {
    await Promise.all([postgres.stop(), redis.stop()]);
    await lock.release();
  };
  return ensureServiceDatabases(postgres, ['identity', 'files']);
}

beforeAll(async () => {
  ({ path: dir, remove: removeDir } = await createDataDir());
  const urls = await startServers();
  await migrate(urls.identity, 'identity', identityMigrations);
  await addFile(urls.files);
  await writeFile(join(dir, 'secrets.json'), JSON.stringify({ secretKey: SECRET_KEY }));
});
afterAll(async () => {
  await stopServers();
  await removeDir();
});

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
  const folder = join(dir, 'files', 'objects', APPLICATION);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, FILE), 'content');
}

/** Starts a command with these settings and no others. */
function run(name: 'accounts' | 'check-files', args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [join(import.meta.dirname, `${name}-main.ts`), ...args], {
    env: { ...programEnv(), HOME: process.env.HOME, DATA_DIR: dir, ...env },
  });
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  const ended = Promise.all([closed, text(child.stdout), text(child.stderr)]).then(([code, out, err]) => ({ code, out, err }));
  return { child, ended };
}

async function openAccounts(env: NodeJS.ProcessEnv = {}) {
  const notes: string[] = [];
  const target = await openAccountsTarget({ DATA_DIR: dir, ...env }, (line) => notes.push(line));
  return { ...target, notes };
}

describe('beside a Latchkey that runs', () => {
  it('check-files uses its PostgreSQL and leaves it alone', async () => {
    const { code, out, err } = await run('check-files', []).ended;
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const folder = join(dir, 'files');
    expect(out).toContain(`the database 127.0.0.1:${databasePort}/latchkey with the folder ${folder}.\nChecked 1 file, 1 object`);
    expect(
      processesOn(dir)
        .map(([name]) => name)
        .sort(),
    ).toEqual(['postgres', 'redis']);
  });

  it('accounts uses its PostgreSQL, its secret and its Redis', async () => {
    const { config, listeners, notes, close } = await openAccounts();
    await close();
    expect(config).toMatchObject({ SECRET_KEY, REDIS_URL: redisUrl });
    expect(config.DATABASE_URL).toMatch(new RegExp(`^postgresql://identity:.*:${databasePort}/latchkey$`));
    expect({ listeners, notes }).toEqual({ listeners: 'by-redis', notes: [] });
  });

  it('accounts reports nothing to its Redis where DATABASE_URL names another database', async () => {
    const database = await createEmptyTestDatabase();
    onTestFinished(() => database.drop());
    const { config, listeners } = await openAccounts({ DATABASE_URL: database.url });
    expect([config.DATABASE_URL, listeners]).toEqual([database.url, 'unknown']);
    const given = await openAccounts({ DATABASE_URL: database.url, REDIS_URL: redisUrl });
    expect([given.config.REDIS_URL, given.listeners]).toEqual([redisUrl, 'by-redis']);
  });

  it('accounts reports to its Redis where it uses the database of DATABASE_URL itself', async () => {
    const database = await createEmptyTestDatabase();
    onTestFinished(() => database.drop());
    const elsewhere = await createDataDir();
    onTestFinished(() => elsewhere.remove());
    const redis = await startRedis({ dataDir: elsewhere.path, cacheDir: CACHE_DIR });
    onTestFinished(() => redis.stop());
    const { config, listeners } = await openAccounts({ DATA_DIR: elsewhere.path, DATABASE_URL: database.url, SECRET_KEY });
    expect([config.REDIS_URL, listeners]).toEqual([redis.url, 'by-redis']);
  });

  it('check-files uses the database of DATABASE_URL and the folder of OBJECTS_DIR', async () => {
    const env = { DATA_DIR: dir, DATABASE_URL: 'postgres://elsewhere/latchkey', OBJECTS_DIR: '/objects' };
    const { config } = await openCheckTarget(env, () => {});
    expect(config).toMatchObject({ DATABASE_URL: env.DATABASE_URL, OBJECTS_DIR: '/objects' });
  });
});

describe.runIf(process.platform === 'linux')('without a Latchkey that runs', { timeout: 60_000 }, () => {
  beforeAll(() => stopServers());
  afterAll(() => startServers());
  const expectStopped = async () => {
    expect(processesOn(dir)).toEqual([]);
    await (await acquireDataDirLock(dir)).release();
  };

  it('check-files starts its PostgreSQL, and stops it', async () => {
    const { code, out, err } = await run('check-files', []).ended;
    expect({ code, err }).toEqual({ code: 0, err: `${starts('the check')}\n` });
    expect(out).toContain('Checked 1 file, 1 object');
    await expectStopped();
  });

  it('a password that accounts generates is in no file of the data folder', async () => {
    const created = await run('accounts', ['create', '--username', 'ada', '--email', 'ada@example.com', '--generate', '--json'])
      .ended;
    const { password } = JSON.parse(created.out);
    const entries = await readdir(dir, { recursive: true, withFileTypes: true });
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const contents = await Promise.all(paths.map((path) => readFile(path)));
    expect(contents.some((content) => content.includes('ada@example.com'))).toBe(true);
    expect(paths.filter((_path, i) => contents[i]?.includes(password))).toEqual([]);
  });

  it('accounts starts its PostgreSQL, and stops it when it is interrupted', async () => {
    const { child, ended } = run('accounts', ['reset-password', 'ada']);
    // Once it is connected, it waits for the password only.
    const connected = `select from pg_stat_activity where application_name = 'latchkey-identity' and state = 'idle'`;
    const countConnections = async () => {
      const url = await findServiceDatabase(dir, 'identity');
      return url ? (await withClient(url, (client) => client.query(connected))).rowCount : 0;
    };
    await eventually(async () => (await countConnections()) !== 0, { timeoutMs: 20_000 });
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, out: '' });
    await expectStopped();
  });

  it('accounts reports to no gateway, and stops the PostgreSQL when it is closed', async () => {
    const { listeners, notes, close } = await openAccounts();
    await close();
    expect({ listeners, notes }).toEqual({ listeners: 'none', notes: [starts('this command')] });
    await expectStopped();
  });

  it('the commands report wrong settings before they start anything, and where a secret is missing', async () => {
    const [secrets, moved] = [join(dir, 'secrets.json'), join(dir, 'elsewhere.json')];
    await rename(secrets, moved);
    await expect(openAccounts({ SIGN_UP: 'maybe' })).rejects.toThrow(
      `SECRET_KEY is required, as ${secrets} holds none: set it, or DATA_DIR, as for npm start\nSIGN_UP must be open or closed`,
    );
    await rename(moved, secrets);
    await expect(openCheckTarget({ DATA_DIR: dir, OBJECT_STORE: 's3' }, () => {})).rejects.toThrow('S3_BUCKET is required');
    await expectStopped();
  });

  it('the commands say where there is no database, and create none', async () => {
    const DATA_DIR = join(dir, 'missing');
    const message = `There is no database in ${DATA_DIR}: set DATA_DIR or DATABASE_URL as for npm start.`;
    await expect(openAccounts({ DATA_DIR })).rejects.toThrow(message);
    await expect(openCheckTarget({ DATA_DIR }, () => {})).rejects.toThrow(message);
    expect(await readdir(dir)).not.toContain('missing');
  });

  it('accounts names a database that does not answer, without the password', async () => {
    const DATABASE_URL = 'postgres://latchkey:hunter2@127.0.0.1:1/none';
    await expect(openAccounts({ DATABASE_URL })).rejects.toThrow(
      /^The PostgreSQL at 127\.0\.0\.1:1, which DATABASE_URL names, can't be used: (?!.*hunter2)/,
    );
  });
});
