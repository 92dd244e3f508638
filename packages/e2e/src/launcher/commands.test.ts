import { spawn, spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { startPostgres } from '@latchkey/embedded/postgres/postgres';
import { findServiceDatabase } from '@latchkey/embedded/postgres/running-postgres';
import { ensureServiceDatabases } from '@latchkey/embedded/postgres/service-databases';
import { acquireDataDirLock } from '@latchkey/embedded/process/data-dir-lock';
import { startRedis } from '@latchkey/embedded/redis/redis';
import { migrations } from '@latchkey/files/db/migrations';
import { migrations as identityMigrations } from '@latchkey/identity/db/migrations';
import { migrate } from '@latchkey/kit/database/migrate';
import { openAccountsTarget } from '@latchkey/launcher/accounts';
import { openCheckTarget } from '@latchkey/launcher/check-files';
import { ROOT } from '@latchkey/launcher/program';
import { eventually } from '@latchkey/testkit/eventually';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createDataDir } from '../instance/launcher-process.ts';
import { findServerProcesses } from '../instance/running-processes.ts';

const LATCHKEY = `${ROOT}packages/launcher/src/latchkey-cli.ts`;
const CACHE_DIR = `${ROOT}node_modules/.cache/latchkey`;
const SECRET_KEY = 'a-secret-key-of-the-tests-of-commands';
const starts = (purpose: string) => `Latchkey does not run: starting its PostgreSQL for ${purpose}.`;
const serversOf = (dir: string) => findServerProcesses(dir).map(([name]) => name);

let dir: string;
let redisUrl: string;
let databasePort: number;
const stops = new AsyncDisposableStack();
/** The lock of the folder, and its servers, as of a Latchkey that runs. */
const running = new AsyncDisposableStack();

beforeAll(async () => {
  const { path, remove } = await createDataDir();
  dir = path;
  stops.defer(remove);
  stops.use(running);
  const lock = await acquireDataDirLock(dir);
  running.defer(lock.release);
  const postgres = await startPostgres({ dataDir: dir, durable: false });
  running.defer(postgres.stop);
  const redis = await startRedis({ dataDir: dir, cacheDir: CACHE_DIR });
  running.defer(redis.stop);
  [redisUrl, databasePort] = [redis.url, postgres.port];
  const urls = await ensureServiceDatabases(postgres, ['identity', 'files']);
  await migrate(urls.identity, 'identity', identityMigrations);
  await migrate(urls.files, 'files', migrations);
  await mkdir(join(dir, 'files', 'objects'), { recursive: true });
  await writeFile(join(dir, 'secrets.json'), JSON.stringify({ secretKey: SECRET_KEY }));
});
afterAll(() => stops.disposeAsync());

/** Starts a command on the data folder. */
function run(name: 'accounts' | 'check-files', ...args: string[]) {
  const child = spawn(process.execPath, [LATCHKEY, 'admin', name, ...args], {
    env: { ...programEnv(), HOME: process.env.HOME, DATA_DIR: dir },
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

describe('with a running Latchkey', () => {
  it('the commands use its PostgreSQL, its secret and its Redis, and leave them alone', async () => {
    const { config, listeners, notes, close } = await openAccounts();
    await close();
    expect(config).toMatchObject({ SECRET_KEY, REDIS_URL: redisUrl });
    expect(config.DATABASE_URL).toMatch(new RegExp(`^postgresql://identity:.*:${databasePort}/latchkey$`));
    expect({ listeners, notes }).toEqual({ listeners: 'by-redis', notes: [] });
    const check = await openCheckTarget({ DATA_DIR: dir }, () => {});
    await check.close();
    expect(check.config).toMatchObject({
      DATABASE_URL: expect.stringContaining(`:${databasePort}/`),
      OBJECTS_DIR: join(dir, 'files'),
    });
    expect(serversOf(dir).sort()).toEqual(['postgres', 'redis']);
  });

  it('accounts reports to its Redis only where it uses the database of DATABASE_URL itself', async () => {
    const database = await createEmptyTestDatabase();
    onTestFinished(() => database.drop());
    const other = await openAccounts({ DATABASE_URL: database.url });
    expect([other.config.DATABASE_URL, other.listeners]).toEqual([database.url, 'unknown']);
    const given = await openAccounts({ DATABASE_URL: database.url, REDIS_URL: redisUrl });
    expect([given.config.REDIS_URL, given.listeners]).toEqual([redisUrl, 'by-redis']);
    const elsewhere = await createDataDir();
    onTestFinished(() => elsewhere.remove());
    const redis = await startRedis({ dataDir: elsewhere.path, cacheDir: CACHE_DIR });
    onTestFinished(() => redis.stop());
    const own = await openAccounts({ DATA_DIR: elsewhere.path, DATABASE_URL: database.url, SECRET_KEY });
    expect([own.config.REDIS_URL, own.listeners]).toEqual([redis.url, 'by-redis']);
  });

  it('check-files uses the database of DATABASE_URL and the folder of OBJECTS_DIR', async () => {
    const env = { DATA_DIR: dir, DATABASE_URL: 'postgres://elsewhere/latchkey', OBJECTS_DIR: '/objects' };
    const { config } = await openCheckTarget(env, () => {});
    expect(config).toMatchObject({ DATABASE_URL: env.DATABASE_URL, OBJECTS_DIR: '/objects' });
  });

  it('the reader of the help may go away', () => {
    const args = ['-c', '"$0" "$1" admin accounts --help | true', process.execPath, LATCHKEY];
    expect(spawnSync('sh', args, { env: programEnv(), encoding: 'utf8' }).stderr).toBe('');
  });

  it('a password that accounts generates is in no file of the data folder', async () => {
    const created = await run('accounts', 'create', '--username', 'ada', '--email', 'ada@example.com', '--generate', '--json')
      .ended;
    const { password } = JSON.parse(created.out);
    const readFiles = async () => {
      const entries = await readdir(dir, { recursive: true, withFileTypes: true });
      const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
      return Promise.all(paths.map((path) => readFile(path, 'latin1')));
    };
    await eventually(async () => (await readFiles()).some((content) => content.includes('ada@example.com')));
    expect((await readFiles()).filter((content) => content.includes(password))).toEqual([]);
  });
});

describe.runIf(process.platform === 'linux')('without a Latchkey that runs', { timeout: 60_000 }, () => {
  beforeAll(() => running.disposeAsync());
  const expectStopped = async () => {
    expect(findServerProcesses(dir)).toEqual([]);
    await (await acquireDataDirLock(dir)).release();
  };

  it('check-files starts its PostgreSQL, and stops it', async () => {
    const { code, out, err } = await run('check-files').ended;
    expect({ code, err }).toEqual({ code: 0, err: `${starts('the check')}\n` });
    expect(out).toContain(`with the folder ${join(dir, 'files')}.\nChecked 0 files, 0 objects`);
    await expectStopped();
  });

  it('accounts reports to no gateway, and stops the PostgreSQL when it is interrupted', async () => {
    const { child, ended } = run('accounts', 'reset-password', 'ada');
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
    const DATA_DIR = join(dir, 'missing');
    const message = `There is no database in ${DATA_DIR}: set DATA_DIR or DATABASE_URL as for npm start.`;
    await expect(openAccounts({ DATA_DIR })).rejects.toThrow(message);
    await expect(openCheckTarget({ DATA_DIR }, () => {})).rejects.toThrow(message);
    expect(await readdir(dir)).not.toContain('missing');
    await expectStopped();
  });
});
