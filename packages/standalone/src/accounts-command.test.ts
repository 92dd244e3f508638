import { spawn } from 'node:child_process';
import { readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findServiceDatabase } from '@latchkey/embedded/running-postgres';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/program-env';
import { testRedis } from '@latchkey/testkit/redis';
import { withClient } from '@latchkey/testkit/with-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Api } from './testing/api.ts';
import { cookieOf, createKey, type Owner } from './testing/caller.ts';
import { createDataDir, type Launched, launch } from './testing/launched.ts';
import { processesOn } from './testing/processes-on.ts';

const MAIN = fileURLToPath(new URL('accounts-main.ts', import.meta.url));
const STARTS = 'Latchkey does not run: starting its PostgreSQL for this command.\n';
const NO_REDIS = 'No Redis is known, as REDIS_URL is not set and none was found: waiting 3 s, after which it holds everywhere.\n';
const [PASSWORD, OTHER] = ['nobody would guess this', 'nor would they guess that'];
const CREATE = ['create', '--username', 'ada', '--email', 'ada@example.com'];
const APPLICATIONS = '/api/v1/panel/get-applications';

let dir: Awaited<ReturnType<typeof createDataDir>>;
const launched: Launched[] = [];
const cleanUps: Array<() => unknown> = [];
beforeEach(async () => {
  dir = await createDataDir();
});
afterEach(async () => {
  for (const one of launched) one.signal('SIGTERM');
  await Promise.all(launched.splice(0).map((one) => one.exited));
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await eventually(() => processesOn(dir.path).length === 0, { timeoutMs: 20_000 });
  await dir.remove();
});

const start = (env: NodeJS.ProcessEnv = {}, ...args: string[]) => {
  const one = launch({ DATA_DIR: dir.path, PORT: '0', REALTIME_PORT: '0', SIGN_UP: 'closed', ...env }, args);
  launched.push(one);
  return one;
};

async function stop(one: Launched): Promise<void> {
  one.signal('SIGTERM');
  await one.exited;
}

/** Starts the command with these settings and no others; its standard input stays open. */
function begin(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...programEnv(), HOME: process.env.HOME, DATA_DIR: dir.path, ...env },
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk) => {
      output[name] += chunk;
    });
  }
  child.stdin.on('error', () => undefined);
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.on('close', (code) => resolve({ code, ...output }));
  });
  return { child, ended };
}

/** Runs the command with this on standard input. */
function run(args: readonly string[], { input = '', env = {} }: { input?: string; env?: NodeJS.ProcessEnv } = {}) {
  const { child, ended } = begin(args, env);
  child.stdin.end(input);
  return ended;
}

async function signIn(baseUrl: string, password: string): Promise<Pick<Owner, 'session'>> {
  const api = new Api(baseUrl);
  const { headers, data } = await api.post('/api/v1/auth/sign-in', { email: 'ada@example.com', password });
  return { session: api.with({ cookie: cookieOf(headers), 'x-csrf-token': data?.csrfToken ?? '' }) };
}

describe.runIf(process.platform === 'linux')('npm run accounts', { timeout: 180_000 }, () => {
  it('takes effect on the next request beside a running Latchkey, leaves its servers alone, and writes no password to a file', async () => {
    const baseUrl = await start({ LOG_LEVEL: 'trace' }).running;
    const servers = processesOn(dir.path).sort();
    expect(await run(CREATE, { input: `${PASSWORD}\n` })).toMatchObject({ code: 0, stderr: '' });
    const owner = (await signIn(baseUrl, PASSWORD)) as Owner;
    const key = await createKey(owner);
    const statuses = async () => [(await key.api.get(APPLICATIONS)).code, (await owner.session.get(APPLICATIONS)).code];
    // Twice, so that the gateway remembers who they are.
    for (let i = 0; i < 2; i += 1) expect(await statuses()).toEqual(['', '']);
    expect(await run(['revoke-key', 'ada', key.record.publicId])).toMatchObject({ code: 0, stderr: '' });
    expect(await statuses()).toEqual(['api_key_revoked', '']);
    expect(await run(['reset-password', 'ada'], { input: OTHER })).toMatchObject({ code: 0, stderr: '' });
    expect(await statuses()).toEqual(['api_key_revoked', 'unauth']);
    const later = await signIn(baseUrl, OTHER);
    expect((await later.session.get(APPLICATIONS)).code).toBe('');
    expect(await run(['sign-out', 'ada'])).toMatchObject({ code: 0, stderr: '' });
    expect((await later.session.get(APPLICATIONS)).code).toBe('unauth');
    expect(processesOn(dir.path).sort()).toEqual(servers);

    const { password } = JSON.parse((await run(['reset-password', 'ada', '--generate', '--json'])).stdout);
    await stop(launched[0] as Launched);
    const names = await readdir(dir.path, { recursive: true, withFileTypes: true });
    const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const contents = await Promise.all(files.map((path) => readFile(path)));
    // The search itself works: the e-mail address is found.
    expect(contents.some((content) => content.includes('ada@example.com'))).toBe(true);
    for (const secret of [PASSWORD, OTHER, password]) {
      expect(files.filter((_path, i) => contents[i]?.includes(secret))).toEqual([]);
    }
  });

  it('starts the PostgreSQL of a stopped Latchkey, and stops it when it succeeds, is rejected or is interrupted', async () => {
    const first = start();
    const baseUrl = await first.running;
    await run(CREATE, { input: PASSWORD });
    await signIn(baseUrl, PASSWORD);
    await stop(first);
    const expectStopped = async () => {
      expect(processesOn(dir.path)).toEqual([]);
      expect(await readdir(dir.path)).not.toContain('launcher.lock');
    };

    const refused = await run(['sign-out', 'nobody']);
    expect(refused).toEqual({ code: 1, stdout: '', stderr: `${STARTS}There is no account "nobody".\n` });
    await expectStopped();

    const { child, ended } = begin(['reset-password', 'ada']);
    // Once it is connected it waits for the password only.
    await eventually(() => hasConnected(dir.path), { timeoutMs: 20_000 });
    child.kill('SIGINT');
    expect(await ended).toEqual({ code: 130, stdout: '', stderr: STARTS });
    await expectStopped();

    const reset = await run(['reset-password', 'ada', '--json', '--generate']);
    expect(reset).toMatchObject({ code: 0, stderr: STARTS });
    const { endedSessions, password } = JSON.parse(reset.stdout);
    expect(endedSessions).toBe(1);
    await expectStopped();

    const [secrets, moved] = [join(dir.path, 'secrets.json'), join(dir.path, 'elsewhere.json')];
    await rename(secrets, moved);
    const { code, stderr } = await run(['list'], { env: { SIGN_UP: 'maybe' } });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^Wrong settings:\n {2}SECRET_KEY is required, as .+\n {2}SIGN_UP must be open or closed\n$/),
    });
    await expectStopped();
    await rename(moved, secrets);

    const { session } = await signIn(await start().running, password);
    expect((await session.get(APPLICATIONS)).code).toBe('');
  });

  it('uses the servers that DATABASE_URL and REDIS_URL name, and the secret of the data folder', async () => {
    const database = await createEmptyTestDatabase();
    cleanUps.push(() => database.drop());
    const env = { DATABASE_URL: database.url, REDIS_URL: (await testRedis()).url };
    const baseUrl = await start(env).running;
    expect(await run(CREATE, { input: PASSWORD, env })).toMatchObject({ code: 0, stderr: '' });
    const { session } = await signIn(baseUrl, PASSWORD);
    expect((await session.get(APPLICATIONS)).code).toBe('');
    expect(await run(['sign-out', 'ada'], { env })).toMatchObject({ code: 0, stderr: '' });
    expect((await session.get(APPLICATIONS)).code).toBe('unauth');
    await signIn(baseUrl, PASSWORD);
    expect(await run(['sign-out', 'ada'], { env: { DATABASE_URL: database.url } })).toMatchObject({
      code: 0,
      stderr: NO_REDIS,
    });
  });

  it('tells nothing to the Redis of a Latchkey that has another database', async () => {
    const elsewhere = await createDataDir();
    cleanUps.push(() => elsewhere.remove());
    const database = await createEmptyTestDatabase();
    cleanUps.push(() => database.drop());
    const given = { DATABASE_URL: database.url };
    const other = start({ ...given, REDIS_URL: (await testRedis()).url, DATA_DIR: elsewhere.path });
    const [baseUrl] = await Promise.all([other.running, start().running]);
    expect(await run(CREATE, { input: PASSWORD, env: given })).toMatchObject({ code: 0, stderr: '' });
    const { session } = await signIn(baseUrl, PASSWORD);
    expect((await session.get(APPLICATIONS)).code).toBe('');
    expect(await run(['sign-out', 'ada'], { env: given })).toMatchObject({ code: 0, stderr: NO_REDIS });
    expect((await session.get(APPLICATIONS)).code).toBe('unauth');
  });

  it('uses the database that DATABASE_URL names, and the Redis that runs beside it', async () => {
    const database = await createEmptyTestDatabase();
    cleanUps.push(() => database.drop());
    const env = { DATABASE_URL: database.url };
    const baseUrl = await start(env).running;
    await run(CREATE, { input: PASSWORD, env });
    const { session } = await signIn(baseUrl, PASSWORD);
    expect((await session.get(APPLICATIONS)).code).toBe('');
    expect(await run(['sign-out', 'ada'], { env })).toMatchObject({ code: 0, stderr: '' });
    expect((await session.get(APPLICATIONS)).code).toBe('unauth');
  });

  it('says which setting names a database that does not answer, and where a secret is missing', async () => {
    const env = { DATABASE_URL: 'postgres://latchkey:hunter2@127.0.0.1:1/none' };
    expect(await run(['list'], { env })).toEqual({
      code: 1,
      stdout: '',
      stderr: `Wrong settings:\n  SECRET_KEY is required, as ${dir.path}/secrets.json holds none: set it, or DATA_DIR, as for npm start\n`,
    });
    const { code, stderr } = await run(['list'], { env: { ...env, SECRET_KEY: 'k'.repeat(32) } });
    expect(code).toBe(1);
    expect(stderr).toContain("The PostgreSQL at 127.0.0.1:1, which DATABASE_URL names, can't be used: ");
    expect(stderr).not.toContain('hunter2');
  });

  it('says where there is no database, and makes none', async () => {
    const missing = join(dir.path, 'missing');
    for (const DATA_DIR of [dir.path, missing]) {
      const { code, stdout, stderr } = await run(['list'], { env: { DATA_DIR } });
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(`There is no database in ${DATA_DIR}: set DATA_DIR or DATABASE_URL as for npm start.`);
    }
    expect(await readdir(dir.path)).toEqual([]);
  });

  it('shows how it is used', async () => {
    expect(await run(['--help'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Usage: npm run accounts -- COMMAND/),
    });
    expect(await run([])).toMatchObject({ code: 2, stderr: 'A command is needed.\nSee npm run accounts -- --help\n' });
  });
});

/** Whether the command has asked its database something. */
async function hasConnected(dataDir: string): Promise<boolean> {
  const url = await findServiceDatabase(dataDir, 'identity').catch(() => undefined);
  if (url === undefined) return false;
  const { rowCount } = await withClient(url, (client) => {
    return client.query("select from pg_stat_activity where application_name = 'latchkey-identity' and state = 'idle'");
  });
  return rowCount !== 0;
}
