import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPostgres, readAdminUrl } from '@latchkey/embedded/postgres/running-postgres';
import { findFreePort } from '@latchkey/embedded/process/free-port';
import { eventually } from '@latchkey/testkit/eventually';
import { GENEROUS_LIMITS } from '../instance/instance.ts';
import { createDataDir, type LauncherProcess, startLauncher } from '../instance/launcher-process.ts';
import { findServerProcesses } from '../instance/running-processes.ts';
import { type StoreView, viewOfDisk } from './stored-state.ts';
import { type Fault, SETTINGS, STORE_ERROR_MS_MAX, type Target } from './target.ts';

/** Store of files, and its faults; the data folder's disk unless given. */
export interface OwnStore {
  readonly env: NodeJS.ProcessEnv;
  readonly store: StoreView;
  readonly faults: readonly Fault[];
  stop(): unknown;
}

/** Starts Latchkey as `npm start` does, on its own PostgreSQL, Redis and data folder. */
export async function startStandaloneTarget(own?: OwnStore): Promise<Target> {
  const dir = await createDataDir();
  const ports = [await findFreePort(), await findFreePort()];
  const settings = { ...GENEROUS_LIMITS, ...SETTINGS, HOST: '127.0.0.1', PORT: `${ports[0]}`, REALTIME_PORT: `${ports[1]}` };
  let launcher: LauncherProcess;
  const start = async () => {
    launcher = await startLauncher({ ...settings, DATA_DIR: dir.path, ...own?.env });
    await launcher.running;
  };
  const restart = async () => {
    await launcher.exited;
    await start();
  };
  const kill = (victim: string) => {
    const all: Array<[string, number]> = [['launcher', launcher.pid], ...findServerProcesses(dir.path)];
    for (const [name, pid] of all) if (victim === 'everything' || name === victim) process.kill(pid, 'SIGKILL');
  };
  const killed = (victim: string, repair: () => unknown): Fault => {
    return { name: `${victim} killed`, costs: 'anything', breakIt: () => kill(victim), repair };
  };
  /**
   * The launcher gives up a server that is killed again and again: its own supervisor starts it
   * again.
   */
  const revive = (victim: string): Fault => {
    let printed = '';
    const breakIt = () => {
      printed = launcher.output();
      kill(victim);
    };
    const repair = async () => {
      const ending = () => /runs again|can't be kept running/.exec(launcher.output().slice(printed.length))?.[0];
      await eventually(() => ending() !== undefined, { timeoutMs: 60_000 });
      if (ending() !== 'runs again') await restart();
    };
    return { ...killed(victim, repair), breakIt };
  };
  const baseUrl = `http://127.0.0.1:${ports[0]}`;
  await start();
  return {
    baseUrl,
    realtimeUrl: `ws://127.0.0.1:${ports[1]}/api/v1/realtime`,
    gateways: [baseUrl],
    store: own?.store ?? viewOfDisk(`${dir.path}/files`),
    kills: [killed('everything', restart), revive('postgres'), revive('redis'), killed('launcher', restart)],
    faults: own?.faults ?? [
      killed('everything', restart),
      killed('postgres', () => undefined),
      killed('redis', () => undefined),
      killed('launcher', restart),
      {
        name: 'stopped',
        costs: 'later requests',
        closesSockets: true,
        breakIt: () => launcher.signal('SIGTERM'),
        repair: restart,
      },
    ],
    async databaseUrl() {
      const running = await findPostgres(dir.path);
      if (!running) throw new Error('PostgreSQL does not run');
      return readAdminUrl(running.credentialsPath, running.port);
    },
    async isReady() {
      const ready = await fetch(`${baseUrl}/readyz`, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
      await ready?.body?.cancel();
      return ready?.ok === true && findServerProcesses(dir.path).length === 2;
    },
    output: () => launcher.output(),
    async stop() {
      await launcher.stop();
      await eventually(() => findServerProcesses(dir.path).length === 0, { timeoutMs: 60_000, intervalMs: 50 });
      await dir.remove();
      await own?.stop();
    },
  };
}

/** A file system of 64 MiB that gets full; undefined where this process may not mount one. */
export function mountSmallDisk(): OwnStore | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'latchkey-small-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', dir], { stdio: 'pipe' });
  } catch {
    rmSync(dir, { recursive: true });
    return undefined;
  }
  const filler = join(dir, 'filler');
  const fill = () => {
    const { bavail, bsize } = statfsSync(dir);
    writeFileSync(filler, Buffer.alloc(Math.max(1, bavail * bsize - 100_000)));
  };
  const repair = () => rmSync(filler, { force: true });
  return {
    env: { OBJECTS_DIR: dir },
    store: viewOfDisk(dir),
    faults: [{ name: 'disk full', costs: 'errors', errorMsMax: STORE_ERROR_MS_MAX, breakIt: fill, repair }],
    stop() {
      execFileSync('umount', [dir]);
      rmSync(dir, { recursive: true });
    },
  };
}
