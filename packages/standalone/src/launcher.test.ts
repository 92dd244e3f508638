import { once } from 'node:events';
import { readdir, readFile, rm, stat, symlink } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { findFreePort } from '@latchkey/embedded/free-port';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Api } from './testing/api.ts';
import { createApplication, createKey, signUp as signUpWith } from './testing/caller.ts';
import { createDataDir, type Launched, launch } from './testing/launched.ts';
import { processesOn, serviceProcessesOf } from './testing/processes-on.ts';

const PATIENCE = { timeoutMs: 30_000 };
const DISK_FULL = /The disk mounted on \/\S* is full; it holds /;
const ACCOUNT = { username: 'ada', email: 'ada@example.com', password: 'nobody would guess this' };

const signUp = (baseUrl: string) => post(`${baseUrl}/api/v1/auth/sign-up`, ACCOUNT);
const signIn = (baseUrl: string) => post(`${baseUrl}/api/v1/auth/sign-in`, { email: ACCOUNT.email, password: ACCOUNT.password });

async function post(url: string, body: object): Promise<number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.body?.cancel();
  return response.status;
}

describe.runIf(process.platform === 'linux')('the launcher', { timeout: 180_000 }, () => {
  let dir: Awaited<ReturnType<typeof createDataDir>>;
  let launched: Launched[];
  const start = (env: NodeJS.ProcessEnv = {}, ...args: string[]) => {
    const one = launch({ DATA_DIR: dir.path, PORT: '0', REALTIME_PORT: '0', ...env }, args);
    launched.push(one);
    return one;
  };
  /** Has the next start of PostgreSQL fail as on a full disk. Returns the file to remove for space. */
  const fillDisk = async () => {
    const path = join(dir.path, 'postgres', 'data', 'postmaster.opts');
    await rm(path);
    await symlink('/dev/full', path);
    return path;
  };
  beforeEach(async () => {
    dir = await createDataDir();
    launched = [];
  });
  afterEach(async () => {
    for (const one of launched) one.signal('SIGTERM');
    await Promise.all(launched.map((one) => one.exited));
    await eventually(() => processesOn(dir.path).length === 0, PATIENCE);
    await dir.remove();
  });

  describe.each([
    ['in one process', [], []],
    ['in a process for each service', ['--deployed'], ['apps', 'files', 'gateway', 'identity', 'realtime']],
  ])('%s', (_title, args, services) => {
    it('serves, closes live connections first when told to stop, leaves nothing running, and starts with the same data', async () => {
      const first = start({ SIGNUP: 'closed' }, ...args);
      const owner = await signUpWith(new Api(await first.running));
      expect(first.output().match(/SIGNUP is not a setting and has no effect. Did you mean SIGN_UP\?/g)).toHaveLength(1);
      expect(
        processesOn(dir.path)
          .map(([name]) => name)
          .sort(),
      ).toEqual(['postgres', 'redis']);
      const children = serviceProcessesOf(first.process.pid ?? 0);
      expect(children.map(([name]) => name).sort()).toEqual(services);

      const { api } = await createKey(owner);
      await createApplication(api);
      const { socketKey } = (await api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
      const url = /Realtime {4}(ws:\S+)/.exec(first.output())?.[1] ?? '';
      const open = async () => {
        const socket = new WebSocket(url, { headers: { authorization: `Bearer ${socketKey}` } });
        await once(socket, 'message');
        return socket;
      };
      const [socket, silent] = await Promise.all([open(), open()]);
      // A client that does not answer the close is waited for, and the REST interface is there meanwhile.
      silent.pause();
      const closed = once(socket, 'close');
      first.signal('SIGTERM');
      const [code] = await closed;
      expect([code, (await api.get('/api/v1/panel/get-applications')).status]).toEqual([1001, 200]);
      expect(await first.exited).toEqual({ code: 0, signal: null });
      silent.terminate();
      expect(processesOn(dir.path)).toEqual([]);
      expect(serviceProcessesOf(first.process.pid ?? 0)).toEqual([]);

      const second = start({}, ...args);
      const again = new Api(await second.running, api.headers);
      expect((await again.get('/api/v1/panel/get-applications')).data).toHaveLength(1);
    });

    it('starts again what is killed, after a full disk too, and when it is killed itself, and serves as before', async () => {
      const one = start({}, ...args);
      const baseUrl = await one.running;
      await signUp(baseUrl);
      const victims = [...processesOn(dir.path), ...serviceProcessesOf(one.process.pid ?? 0)];
      expect(victims).toHaveLength(2 + services.length);
      for (const [name, pid] of victims) {
        const written = name === 'postgres' ? await fillDisk() : undefined;
        process.kill(pid, 'SIGKILL');
        if (written !== undefined) {
          await eventually(() => expect(one.output()).toMatch(DISK_FULL), PATIENCE);
          expect(await signIn(baseUrl)).toBe(503);
          await rm(written);
        }
        await eventually(
          () => new RegExp(`${name}.* runs again`, 'i').test(one.output().replaceAll('PostgreSQL', 'postgres')),
          PATIENCE,
        );
        await eventually(async () => expect(await signIn(baseUrl)).toBe(200), PATIENCE);
      }
      one.signal('SIGKILL');
      await one.exited;
      const written = await fillDisk();
      const second = start({}, ...args);
      await eventually(() => expect(second.output()).toMatch(DISK_FULL), PATIENCE);
      await rm(written);
      expect(await signIn(await second.running)).toBe(200);
    });
  });

  it('refuses a data folder that another one is using, and names that', async () => {
    const first = start();
    // That its ports are taken as well follows from that, and helps nobody.
    const PORT = new URL(await first.running).port;
    const second = start({ PORT });
    expect(await second.exited).toMatchObject({ code: 1 });
    expect(second.output().trim()).toBe(
      `Another Latchkey (pid ${first.process.pid}) is using ${dir.path}: stop it first, or set DATA_DIR to another folder.`,
    );
  });

  it.each(['PORT', 'REALTIME_PORT'])('says that the port of %s is taken before it does anything', async (setting) => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '0.0.0.0', resolve));
    const { port } = taken.address() as AddressInfo;
    const one = start({ [setting]: String(port) });
    expect(await one.exited).toMatchObject({ code: 1 });
    expect(one.output().trim()).toBe(`Port ${port} is taken by another process: stop that, or set ${setting} to another port.`);
    expect(await readdir(dir.path)).toEqual([]);
    taken.close();
  });

  it('names both ports at once where both are taken', async () => {
    const servers = [createServer(), createServer()];
    for (const taken of servers) await once(taken.listen(0, '0.0.0.0'), 'listening');
    const [port, realtimePort] = servers.map((taken) => (taken.address() as AddressInfo).port);
    const one = start({ PORT: String(port), REALTIME_PORT: String(realtimePort) });
    expect(await one.exited).toMatchObject({ code: 1 });
    expect(one.output().trim().split('\n')).toEqual([
      `Port ${port} is taken by another process: stop that, or set PORT to another port.`,
      `Port ${realtimePort} is taken by another process: stop that, or set REALTIME_PORT to another port.`,
    ]);
    for (const taken of servers) taken.close();
  });

  it('names an address once that both ports were to be on', async () => {
    const [port, realtimePort] = [await findFreePort(), await findFreePort()].map(String);
    const one = start({ HOST: '192.0.2.1', PORT: port, REALTIME_PORT: realtimePort });
    expect(await one.exited).toMatchObject({ code: 1 });
    expect(one.output().trim()).toBe('This machine has no address 192.0.2.1: set HOST to one of its own.');
  });

  it.each(['HOST', 'REALTIME_HOST'])('says that the machine has no such address as %s names', async (setting) => {
    const ports = { [setting.replace('HOST', 'PORT')]: String(await findFreePort()) };
    const one = start({ ...ports, HOST: '127.0.0.1', [setting]: '192.0.2.1' });
    expect(await one.exited).toMatchObject({ code: 1 });
    expect(one.output().trim()).toBe(`This machine has no address 192.0.2.1: set ${setting} to one of its own.`);
    expect(await readdir(dir.path)).toEqual([]);
  });

  it('says that one port can’t be both of its own', async () => {
    const one = start({ PORT: '18080', REALTIME_PORT: '18080' });
    expect(await one.exited).toMatchObject({ code: 1 });
    const sentence = 'PORT (8080 unless set) and REALTIME_PORT (8081 unless set) must differ, and both are 18080';
    expect(one.output().trim()).toBe(`Wrong settings:\n  ${sentence}`);
    expect(await readdir(dir.path)).toEqual([]);
  });

  it('names all wrong settings at once, without their values', async () => {
    const one = start({ PORT: 'many', DATABASE_URL: 'mysql://secret', SECRET_KEY: 'short', RATE_LIMIT_IP_PER_MINUTE: '-1' });
    expect(await one.exited).toMatchObject({ code: 1 });
    expect(one.output().trim().split('\n')).toHaveLength(5);
    for (const name of ['PORT', 'DATABASE_URL', 'SECRET_KEY', 'RATE_LIMIT_IP_PER_MINUTE'])
      expect(one.output()).toContain(`  ${name} `);
    expect(one.output()).not.toMatch(/secret'|short|mysql|-1|at .*\.ts/);
  });

  it('names the wrong settings of services of their own with the others, one a line, before it does anything', async () => {
    const one = start({ PORT: 'many', CONNECTIONS_PER_IP: '0', MIGRATE_ON_START: 'yes' }, '--deployed');
    expect(await one.exited).toMatchObject({ code: 1 });
    expect(one.output().trim().split('\n').toSorted()).toEqual([
      '  CONNECTIONS_PER_IP must be a whole number from 1 to 1000000',
      '  MIGRATE_ON_START must be true or false',
      '  PORT must be a whole number from 0 to 65535',
      'Wrong settings:',
    ]);
    expect(await readdir(dir.path)).toEqual([]);
  });

  it('uses the servers it is given and starts none', async () => {
    const [database, redis] = await Promise.all([createEmptyTestDatabase(), testRedis()]);
    const one = start({ DATABASE_URL: database.url, REDIS_URL: redis.url });
    expect(await signUp(await one.running)).toBe(200);
    expect(processesOn(dir.path)).toEqual([]);
    one.signal('SIGINT');
    expect(await one.exited).toEqual({ code: 0, signal: null });
    await database.drop();
  });

  it.each([
    ['DATABASE_URL', 'postgresql://user:hidden@127.0.0.1:1/db', 'PostgreSQL'],
    ['REDIS_URL', 'redis://:hidden@127.0.0.1:1', 'Redis'],
  ])('says in one sentence that the server of %s does not answer', async (name, url, what) => {
    const one = start({ [name]: url });
    expect(await one.exited).toMatchObject({ code: 1 });
    expect(one.output()).toContain(`The ${what} at 127.0.0.1:1, which ${name} names, can't be used: connect ECONNREFUSED`);
    expect(one.output()).not.toContain('hidden');
  });

  it('says in one sentence that the Redis of REDIS_URL refuses the password', async () => {
    const url = Object.assign(new URL((await testRedis()).url), { username: 'nobody', password: 'hidden' });
    const one = start({ REDIS_URL: url.href });
    expect(await one.exited).toMatchObject({ code: 1 });
    expect(one.output()).toContain(`The Redis at ${url.host}, which REDIS_URL names, can't be used: WRONGPASS`);
    expect(one.output()).not.toContain('hidden');
  });

  it('stops an unfinished start when told to', async () => {
    const one = start();
    await eventually(() => processesOn(dir.path).length > 0, PATIENCE);
    one.signal('SIGINT');
    expect(await one.exited).toEqual({ code: 0, signal: null });
    expect(processesOn(dir.path)).toEqual([]);
  });

  it('keeps its secrets readable by its user only, and out of the log and the terminal', async () => {
    const one = start({ LOG_LEVEL: 'trace' });
    await signUp(await one.running);
    one.signal('SIGTERM');
    await one.exited;
    const path = join(dir.path, 'secrets.json');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const secrets = Object.values(JSON.parse(await readFile(path, 'utf8')) as Record<string, string>);
    const log = await readFile(join(dir.path, 'logs', 'latchkey.1.log'), 'utf8');
    expect(log).toContain('/api/v1/auth/sign-up');
    for (const secret of [...secrets, ACCOUNT.password]) expect(log + one.output()).not.toContain(secret);
  });

  it('explains itself, and does not guess at arguments it does not know', async () => {
    const help = start({}, '--help');
    expect(await help.exited).toMatchObject({ code: 0 });
    expect(help.output()).toContain('DATA_DIR');
    const wrong = start({}, '--deploy');
    expect(await wrong.exited).toMatchObject({ code: 2 });
    expect(wrong.output()).toContain("Unknown option '--deploy'");
  });
});
