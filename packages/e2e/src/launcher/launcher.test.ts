import { once } from 'node:events';
import { readFile, rm, stat, symlink } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { acquireDataDirLock } from '@latchkey/embedded/process/data-dir-lock';
import { findFreePort } from '@latchkey/embedded/process/free-port';
import { claimAddresses } from '@latchkey/launcher/addresses';
import { checkPostgres, checkRedis } from '@latchkey/launcher/external-servers';
import { startLatchkey } from '@latchkey/launcher/latchkey';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { Api } from '../client/api.ts';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { createDataDir, type LauncherProcess, startLauncher } from '../instance/launcher-process.ts';
import { findServerProcesses } from '../instance/running-processes.ts';

const PATIENCE = { timeoutMs: 30_000 };
const DISK_FULL = /The disk that holds \/\S* is full/;
const APPLICATIONS = '/api/v1/panel/get-applications';

describe.runIf(process.platform === 'linux')('the launcher', { timeout: 120_000 }, () => {
  let dir: Awaited<ReturnType<typeof createDataDir>>;
  let launchers: LauncherProcess[];
  const start = async (env: NodeJS.ProcessEnv = {}) => {
    const one = await startLauncher({ DATA_DIR: dir.path, PORT: '0', REALTIME_PORT: '0', ...env });
    launchers.push(one);
    return one;
  };
  /** Makes PostgreSQL fail to start as on a full disk, until the returned file is removed. */
  const fillDisk = async () => {
    const path = join(dir.path, 'postgres', 'data', 'postmaster.opts');
    await rm(path);
    await symlink('/dev/full', path);
    return path;
  };
  beforeEach(async () => {
    dir = await createDataDir();
    launchers = [];
  });
  afterEach(async () => {
    await Promise.all(launchers.map((one) => one.stop()));
    await eventually(() => findServerProcesses(dir.path).length === 0, PATIENCE);
    await dir.remove();
  });

  /** Signs up at a started instance, and returns what reads the applications with a key. */
  async function openCaller(one: LauncherProcess) {
    const owner = await signUp(new Api(await one.running));
    const { api } = await createKey(owner);
    await createApplication(api);
    const readStatus = async () => (await fetch(api.baseUrl + APPLICATIONS, { headers: api.headers })).status;
    return { owner, api, readStatus };
  }
  const runsAgain = (one: LauncherProcess, name: RegExp) =>
    eventually(() => new RegExp(`${name.source} runs again`).test(one.output()), PATIENCE);

  it('restarts killed servers, also on a full disk, and recovers after a kill of all', async () => {
    const first = await start({ SIGNUP: 'closed', LOG_LEVEL: 'trace' });
    const { owner, api, readStatus } = await openCaller(first);
    expect(first.output().match(/SIGNUP is not a setting and has no effect. Did you mean SIGN_UP\?/g)).toHaveLength(1);
    const running = new Map(findServerProcesses(dir.path));
    expect([...running.keys()].sort()).toEqual(['postgres', 'redis']);
    process.kill(running.get('redis') ?? 0, 'SIGKILL');
    await runsAgain(first, /Redis/);
    const full = await fillDisk();
    process.kill(running.get('postgres') ?? 0, 'SIGKILL');
    await eventually(() => expect(first.output()).toMatch(DISK_FULL), PATIENCE);
    expect(await readStatus()).toBe(503);
    await rm(full);
    await runsAgain(first, /PostgreSQL/);
    await eventually(async () => expect(await readStatus()).toBe(200), PATIENCE);
    await expectSecrets(first.output(), owner.password);

    first.signal('SIGKILL');
    await first.exited;
    const fullAgain = await fillDisk();
    const second = await start();
    await eventually(() => expect(second.output()).toMatch(DISK_FULL), PATIENCE);
    await rm(fullAgain);
    const again = new Api(await second.running, api.headers);
    expect((await again.get(APPLICATIONS)).data).toHaveLength(1);
    await expectOrderedStop(second, again);
  });

  /** Secrets are readable by their owner only, and neither in the log nor in the output. */
  async function expectSecrets(printed: string, password: string): Promise<void> {
    const path = join(dir.path, 'secrets.json');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const secrets = Object.values(JSON.parse(await readFile(path, 'utf8')) as Record<string, string>);
    const log = await readFile(join(dir.path, 'logs', 'latchkey.1.log'), 'utf8');
    expect(log).toContain('/api/v1/auth/sign-up');
    for (const secret of [...secrets, password]) expect((log + printed).includes(secret)).toBe(false);
  }

  /** Live connections are closed first; meanwhile the REST interface answers. */
  async function expectOrderedStop(one: LauncherProcess, api: Api): Promise<void> {
    const { socketKey } = (await api.get(APPLICATIONS)).data[0].applicationApiKeys;
    const url = /Realtime {4}(ws:\S+)/.exec(one.output())?.[1] ?? '';
    const open = async () => {
      const socket = new WebSocket(url, { headers: { authorization: `Bearer ${socketKey}` } });
      await once(socket, 'message');
      return socket;
    };
    const [socket, silent] = await Promise.all([open(), open()]);
    silent.pause();
    const closed = once(socket, 'close');
    one.signal('SIGTERM');
    const [code] = await closed;
    expect([code, (await api.get(APPLICATIONS)).status]).toEqual([1001, 200]);
    expect(await one.exited).toMatchObject({ code: 0, signal: null });
    silent.terminate();
    expect(findServerProcesses(dir.path)).toEqual([]);
  }

  it('stops an unfinished start on request', async () => {
    const one = await start();
    await eventually(() => findServerProcesses(dir.path).length > 0, PATIENCE);
    one.signal('SIGINT');
    expect(await one.exited).toMatchObject({ code: 0, signal: null });
    expect(findServerProcesses(dir.path)).toEqual([]);
  });

  it('rejects a data folder that another one is using, before it checks the ports', async () => {
    const lock = await acquireDataDirLock(dir.path);
    const taken = createServer().listen(0, '0.0.0.0');
    await once(taken, 'listening');
    const PORT = String((taken.address() as AddressInfo).port);
    const starting = startLatchkey({ shape: 'standalone', env: { DATA_DIR: dir.path, PORT } });
    await expect(starting).rejects.toThrow(`Another Latchkey (pid ${process.pid}) is using ${dir.path}: stop it first`);
    taken.close();
    await lock.release();
  });
});

it('names all ports that are taken, and an address of both only once', async () => {
  const servers = [createServer(), createServer()];
  for (const taken of servers) await once(taken.listen(0, '0.0.0.0'), 'listening');
  onTestFinished(() => {
    for (const taken of servers) taken.close();
  });
  const [PORT = 0, REALTIME_PORT = 0] = servers.map((taken) => (taken.address() as AddressInfo).port);
  const sentence = (port: number, setting: string) =>
    `Port ${port} is taken by another process: stop that, or set ${setting} to another port.`;
  await expect(claimAddresses({ HOST: '0.0.0.0', PORT, REALTIME_PORT })).rejects.toThrow(
    `${sentence(PORT, 'PORT')}\n${sentence(REALTIME_PORT, 'REALTIME_PORT')}`,
  );
  const free = { PORT: await findFreePort(), REALTIME_PORT: await findFreePort() };
  await expect(claimAddresses({ HOST: '192.0.2.1', ...free })).rejects.toThrow(
    /^This machine has no address 192\.0\.2\.1: set HOST to one that it has\.$/,
  );
});

it('says which server can not be used and why, without the password', async () => {
  const hidden = (setting: string) =>
    new RegExp(`127.0.0.1:1, which ${setting} names, can't be used: connect ECONNREFUSED(?!.*hidden)`);
  await expect(checkPostgres('postgresql://user:hidden@127.0.0.1:1/db')).rejects.toThrow(hidden('DATABASE_URL'));
  const several = checkPostgres('postgresql://user:hidden@127.0.0.1:1,127.0.0.1:2/db');
  await expect(several).rejects.toThrow(/127.0.0.1:2, which DATABASE_URL names, can't be used: connect ECONNREFUSED(?!.*hidden)/);
  await expect(checkRedis('redis://:hidden@127.0.0.1:1')).rejects.toThrow(hidden('REDIS_URL'));
  const url = Object.assign(new URL((await testRedis()).url), { username: 'stranger', password: 'hidden' });
  await expect(checkRedis(url.href)).rejects.toThrow(/which REDIS_URL names, can't be used: WRONGPASS(?!.*hidden)/);
  const plain = createServer((socket) => socket.on('data', () => socket.write('-NOAUTH\r\n'))).listen(0, '127.0.0.1');
  onTestFinished(() => void plain.close());
  await once(plain, 'listening');
  const { port } = plain.address() as AddressInfo;
  const noTls = /which REDIS_URL names, can't be used: the server has no TLS on this port: use a port with TLS(?!.*hidden)/;
  await expect(checkRedis(`rediss://:hidden@127.0.0.1:${port}`)).rejects.toThrow(noTls);
});
