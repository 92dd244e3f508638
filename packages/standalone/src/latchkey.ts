import { mkdir, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { acquireDataDirLock } from '@latchkey/embedded/data-dir-lock';
import { DiskFullError, explainFullDisk, isDiskFull } from '@latchkey/embedded/disk-full';
import { keepFree } from '@latchkey/embedded/free-port';
import { findClusterDir } from '@latchkey/embedded/running-postgres';
import { StartError } from '@latchkey/embedded/start-error';
import { warnOfMisspelt } from '@latchkey/kit/config/misspelt-settings';
import { makeFolder } from '@latchkey/kit/process/make-folder';
import { claimAddresses, realtimeUrl } from './addresses.ts';
import type { Launch, RunningShape } from './launch.ts';
import { openLogSink } from './log-sink.ts';
import { limitRate, limitRepeats, type Reporter, silentReporter } from './reporter.ts';
import { readSecrets } from './secrets.ts';
import { openServers } from './servers.ts';
import { type LauncherSettings, readSettings, type Shape, settingsWithoutEffect } from './settings.ts';
import { backoffFor } from './supervise.ts';

export interface StartLatchkeyOptions {
  shape: Shape;
  /** The settings. `process.env` is not read. */
  env: NodeJS.ProcessEnv;
  reporter?: Reporter | undefined;
  /** Cancels the start, and stops what was started. */
  signal?: AbortSignal | undefined;
}

export interface Latchkey extends RunningShape {
  readonly publicUrl: string;
  readonly realtimeUrl: string;
  readonly signUpOpen: boolean;
  readonly dataDir: string;
  readonly logDir: string;
  /** Limit of {@link stop}, in milliseconds. */
  readonly stopTimeoutMs: number;
  /** Resolves with a sentence when a required process can't be kept running. */
  readonly failed: Promise<string>;
  /**
   * Stops live connections, then the other services, then Redis, then PostgreSQL. Rejects with a
   * SuppressedError of several errors.
   */
  stop(): Promise<void>;
}

const PROBLEM_LINES_PER_SECOND_MAX = 5;
const DISK_FULL_INTERVAL_MS = 60_000;
/** Limit of a call, or a request without a file, that was accepted. */
const CALL_MS_MAX = 60_000;
/** The time over which realtime spreads the closing of its sockets. */
const SOCKET_DRAIN_MS = 5_000;
/** A little more than a service gives itself for the rest of its stop. */
const SERVICE_STOP_SLACK_MS = 31_000;
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

type Given = Pick<Launch, 'env' | 'settings' | 'reporter' | 'signal' | 'stops' | 'onDiskFull'>;

async function start(shape: Shape, given: Given): Promise<Latchkey> {
  const { env, settings, signal, stops } = given;
  // Before the ports: another Latchkey on the same folder is likely to use the same ones.
  const dataDir = await openDataDir(settings.DATA_DIR, stops);
  keepFree(settings.PORT, settings.REALTIME_PORT, Number(env.METRICS_PORT));
  const { address, realtimeAddress } = await claimAddresses(settings);
  const objectsDir = resolve(settings.OBJECTS_DIR ?? join(dataDir, 'files'));
  const secrets = await explainFullDisk(dataDir, () => readSecrets(dataDir, objectsDir, settings));
  const logs = await explainFullDisk(dataDir, () => openLogs(join(dataDir, 'logs'), given));
  stops.defer(() => logs.close());

  const { promise: failed, resolve: onGiveUp } = Promise.withResolvers<string>();
  const publicUrl = settings.PUBLIC_URL?.replace(/\/+$/, '') ?? `http://localhost:${address.port}`;
  const stopTimeoutMs = settings.drainMs + Math.max(settings.uploadDeadlineMs, CALL_MS_MAX) + SERVICE_STOP_SLACK_MS;
  const realtimeStopTimeoutMs = SOCKET_DRAIN_MS + SERVICE_STOP_SLACK_MS;
  const prepared = { dataDir, objectsDir, address, realtimeAddress, publicUrl, secrets, logs };
  const launch = { ...given, ...prepared, stopTimeoutMs, realtimeStopTimeoutMs, onGiveUp };
  // The services' code is loaded while the servers start.
  const startShape = loadShape(shape);
  const servers = await openServers(launch);
  const running = await (await startShape)(launch, servers);
  signal.throwIfAborted();
  return {
    ...running,
    publicUrl,
    realtimeUrl: realtimeUrl(realtimeAddress),
    signUpOpen: settings.signUpOpen,
    dataDir,
    logDir: logs.dir,
    stopTimeoutMs: realtimeStopTimeoutMs + stopTimeoutMs + SERVERS_STOP_MS,
    failed,
    stop: () => stops.disposeAsync(),
  };
}

async function openLogs(dir: string, { reporter, onDiskFull }: Given) {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const onProblem = limitRate(reporter.warn, PROBLEM_LINES_PER_SECOND_MAX);
  return openLogSink(dir, onProblem, () => onDiskFull(new DiskFullError(dir)));
}

async function loadShape(shape: Shape) {
  if (shape === 'deployed') return (await import('./shape/deployed.ts')).startDeployed;
  return (await import('./shape/standalone.ts')).startStandalone;
}

async function openDataDir(path: string, stops: AsyncDisposableStack): Promise<string> {
  try {
    await makeFolder(resolve(path), 0o711);
    const dataDir = await realpath(resolve(path));
    const lock = await acquireDataDirLock(dataDir);
    stops.defer(() => lock.release());
    return dataDir;
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException;
    if (code === undefined) throw err;
    if (isDiskFull(code)) throw new DiskFullError(resolve(path), err);
    const message = `The data folder ${resolve(path)} can't be used (${code}): check who owns it, or set DATA_DIR.`;
    throw new StartError(message, { cause: err });
  }
}
