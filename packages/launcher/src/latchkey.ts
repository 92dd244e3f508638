import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findClusterDir } from '@latchkey/embedded/postgres/running-postgres';
import { DiskFullError, isDiskFull } from '@latchkey/embedded/process/disk-full';
import { warnOfMisspelt } from '@latchkey/kit/config/misspelt-settings';
import { realtimeUrl } from './addresses.ts';
import { prepareLaunch } from './launch.ts';
import { limitRepeats, type Reporter, silentReporter } from './reporter.ts';
import { openServers } from './servers.ts';
import { type LauncherSettings, readSettings, type Shape, settingsWithoutEffect } from './settings.ts';
import { backoffFor } from './supervise.ts';

interface StartLatchkeyOptions {
  shape: Shape;
  /** The settings. `process.env` is not read. */
  env: NodeJS.ProcessEnv;
  reporter?: Reporter;
  signal?: AbortSignal;
}

export type Latchkey = Awaited<ReturnType<typeof start>>;

const DISK_FULL_INTERVAL_MS = 60_000;
const SERVERS_STOP_MS = 15_000;

/**
 * Starts Latchkey, with an embedded PostgreSQL and Redis unless others are given. A start on a full
 * disk is tried again until there is space.
 *
 * @throws {ConfigError} naming every wrong setting
 * @throws {StartError} when something can't be started; what was started is stopped by then
 */
export async function startLatchkey(options: StartLatchkeyOptions): Promise<Latchkey> {
  const { shape, reporter = silentReporter, signal = new AbortController().signal } = options;
  const env = { ...options.env };
  const settings = readSettings(env, shape);
  for (const name of settingsWithoutEffect(env, shape)) reporter.warn(`${name} has no effect here (docs/settings.md).`);
  // The processes of services would repeat the warning.
  for (const name of warnOfMisspelt(env, reporter.warn)) delete env[name];
  const warnOfDisk = limitRepeats(reporter.warn, DISK_FULL_INTERVAL_MS);
  const onDiskFull = ({ message }: DiskFullError) => warnOfDisk(message);
  for (let tries = 0; ; tries += 1) {
    const stops = new AsyncDisposableStack();
    try {
      return await start(shape, { env, settings, reporter, signal, stops, onDiskFull });
    } catch (err) {
      await stops.disposeAsync();
      const full = await findFullDisk(err, settings);
      if (full === undefined) throw err;
      onDiskFull(full);
      await delay(backoffFor(tries), undefined, { signal });
    }
  }
}

async function findFullDisk(err: unknown, { DATA_DIR, DATABASE_URL }: LauncherSettings): Promise<DiskFullError | undefined> {
  if (err instanceof DiskFullError) return err;
  if (DATABASE_URL !== undefined || !isDiskFull(err)) return undefined;
  return new DiskFullError(await findClusterDir(resolve(DATA_DIR)), err);
}

async function start(shape: Shape, given: Parameters<typeof prepareLaunch>[0]) {
  const launch = await prepareLaunch(given);
  // The services' code is loaded while the servers start.
  const startShape = loadShape(shape);
  const servers = await openServers(launch);
  const running = await (await startShape)(launch, servers);
  given.signal.throwIfAborted();
  return {
    ...running,
    publicUrl: launch.publicUrl,
    realtimeUrl: realtimeUrl(launch.realtimeAddress),
    signUpOpen: given.settings.signUpOpen,
    hasDashboard: given.settings.hasDashboard,
    dataDir: launch.dataDir,
    logDir: launch.logs.dir,
    stopTimeoutMs: launch.realtimeStopTimeoutMs + launch.stopTimeoutMs + SERVERS_STOP_MS,
    /** Resolves with a sentence when a required process fails for good. */
    failed: launch.failed,
    /**
     * Stops live connections, then the other services, then Redis, then PostgreSQL. Rejects with a
     * SuppressedError of several errors.
     */
    stop: () => given.stops.disposeAsync(),
  };
}

async function loadShape(shape: Shape) {
  if (shape === 'deployed') return (await import('./shape/deployed.ts')).startDeployed;
  return (await import('./shape/standalone.ts')).startStandalone;
}
