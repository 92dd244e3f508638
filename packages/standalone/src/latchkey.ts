import { access, constants, mkdir, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { acquireDataDirLock } from '@latchkey/embedded/data-dir-lock';
import { DiskFullError, diskFullError, explainFullDisk, saysDiskFull } from '@latchkey/embedded/disk-full';
import { keepFree } from '@latchkey/embedded/free-port';
import { findClusterDir } from '@latchkey/embedded/running-postgres';
import { StartError } from '@latchkey/embedded/start-error';
import { makeFolder } from '@latchkey/kit/make-folder';
import { warnOfMisspelt } from '@latchkey/kit/misspelt-settings';
import { createDiskReporter, type DiskReporter } from './disk-reporter.ts';
import { claimAddress, type ListenAddress, localUrl, realtimeUrl } from './listen-address.ts';
import { type LogSink, openLogSink } from './log-sink.ts';
import { type Reporter, silentReporter } from './reporter.ts';
import { readSecrets } from './secrets.ts';
import { openServers } from './servers.ts';
import { type LauncherSettings, readSettings, type Shape, settingsWithoutEffect } from './settings.ts';
import type { RunningShape, ShapeOptions } from './shape/shape.ts';
import { StopStack } from './stop-stack.ts';
import { backoffFor } from './supervise.ts';
import { throttleLines } from './throttle.ts';

export interface StartLatchkeyOptions {
  shape: Shape;
  /** The settings, as environment variables; nothing else is looked at. */
  env: NodeJS.ProcessEnv;
  /** Stands for `DATABASE_URL` in `env`. */
  databaseUrl?: string | undefined;
  /** Stands for `REDIS_URL` in `env`. */
  redisUrl?: string | undefined;
  /** Whom to tell; nobody by default. */
  reporter?: Reporter | undefined;
  /** Ends a start that is no longer wanted, with what was started already. */
  signal?: AbortSignal | undefined;
}

/** Latchkey, running. */
export interface Latchkey {
  /** The base URL as this machine reaches it. */
  readonly baseUrl: string;
  /** The base URL to tell others. */
  readonly publicUrl: string;
  /** Where clients of this machine open live connections. */
  readonly realtimeUrl: string;
  /** Whether anybody may create an account. */
  readonly signUpOpen: boolean;
  readonly dataDir: string;
  readonly logDir: string;
  /** Pids of the processes beside this one that run now, by what they are. */
  readonly pids: Readonly<Record<string, number>>;
  /** Where other services call each service; empty in the standalone shape. */
  readonly internal: RunningShape['internal'];
  /** Where each process serves its metrics; empty where nobody asked for them. */
  readonly metrics: RunningShape['metrics'];
  /** How long {@link stop} may take, in milliseconds: it tells live connections, and waits for running uploads. */
  readonly stopTimeoutMs: number;
  /** Resolves with a sentence when something that is needed can't be kept running. */
  readonly failed: Promise<string>;
  /** Stops everything: live connections, then the other services, then Redis, then PostgreSQL. */
  stop(): Promise<void>;
}

/** A downloaded Redis is kept with the other dependencies. */
const CACHE_DIR = fileURLToPath(new URL('../../../node_modules/.cache/latchkey', import.meta.url));
const PROBLEM_LINES_PER_SECOND_MAX = 5;

/** Longest time that a call, or a request that carries no file, may take once it was accepted, in milliseconds. */
const CALL_MS_MAX = 60_000;

/** Time for a service's stop beside uploads, calls and live connections, a little more than it gives itself, and for what is stopped after it, in milliseconds. */
const SERVICE_STOP_SLACK_MS = 31_000;
const SERVERS_STOP_MS = 15_000;

/**
 * Starts Latchkey, with a PostgreSQL and a Redis of its own unless some are given.
 *
 * @throws {ConfigError} when settings are wrong, naming all of them.
 * @throws {StartError} when something can't be started; what was started already is stopped by then.
 */
export async function startLatchkey(options: StartLatchkeyOptions): Promise<Latchkey> {
  const { shape, reporter = silentReporter, signal } = options;
  const env = { ...options.env };
  if (options.databaseUrl !== undefined) env.DATABASE_URL = options.databaseUrl;
  if (options.redisUrl !== undefined) env.REDIS_URL = options.redisUrl;
  const settings = readSettings(env, shape);
  for (const name of settingsWithoutEffect(env, shape)) reporter.warn(`${name} has no effect here (docs/settings.md).`);
  // The services of a process each would say so again.
  for (const name of warnOfMisspelt(env, reporter.warn)) delete env[name];
  const disks = createDiskReporter(reporter.warn);
  for (let tries = 0; ; tries += 1) {
    const stops = new StopStack();
    try {
      return await start({ ...options, reporter, env, settings, disks }, stops);
    } catch (err) {
      await stops.stop();
      const full = await findFullDisk(err, settings);
      if (full === undefined) throw err;
      disks.report(full);
      await delay(backoffFor(tries), undefined, { signal });
    }
  }
}

/** The disk that a start failed for, where that is one of ours. */
async function findFullDisk(err: unknown, { DATA_DIR, DATABASE_URL }: LauncherSettings): Promise<DiskFullError | undefined> {
  if (err instanceof DiskFullError) return err;
  return DATABASE_URL === undefined && saysDiskFull(err)
    ? diskFullError(await findClusterDir(resolve(DATA_DIR)), err)
    : undefined;
}

interface StartOptions extends StartLatchkeyOptions {
  readonly reporter: Reporter;
  readonly settings: LauncherSettings;
  readonly disks: DiskReporter;
}

async function start({ shape, env, settings, reporter, disks, signal }: StartOptions, stops: StopStack): Promise<Latchkey> {
  // Another one on the same folder is likely to be on the same ports, and says more of why this one can't start.
  const dataDir = await openDataDir(settings.DATA_DIR, stops);
  keepFree(settings.PORT, settings.REALTIME_PORT, Number(env.METRICS_PORT));
  const { address, realtimeAddress } = await claimAddresses(settings);
  const objectsDir = resolve(settings.OBJECTS_DIR ?? join(dataDir, 'files'));
  const secrets = await explainFullDisk(dataDir, () => readSecrets(dataDir, objectsDir, settings));
  const logs = await explainFullDisk(dataDir, () => openLogs(join(dataDir, 'logs'), reporter, disks));
  stops.push(() => logs.close());

  const { promise: failed, resolve: onGiveUp } = Promise.withResolvers<string>();
  const checkWanted = () => signal?.throwIfAborted();
  const common = { reporter, logs, stops, checkWanted, onGiveUp, disks };
  // The services' code is loaded while the servers start.
  const startShape = loadShape(shape);
  const servers = await openServers({ ...common, settings, dataDir, cacheDir: await chooseCacheDir(dataDir) });
  const publicUrl = settings.PUBLIC_URL?.replace(/\/+$/, '') ?? `http://localhost:${address.port}`;
  const stopTimeoutMs = settings.drainMs + Math.max(settings.uploadDeadlineMs, CALL_MS_MAX) + SERVICE_STOP_SLACK_MS;
  const realtimeStopTimeoutMs = settings.socketDrainMs + SERVICE_STOP_SLACK_MS;
  const addresses = { address, realtimeAddress, publicUrl };
  const composition = { env, ...addresses, servers, secrets, objectsDir, stopTimeoutMs, realtimeStopTimeoutMs };
  const running = await (await startShape)({ ...common, ...composition });
  checkWanted();
  return {
    baseUrl: localUrl(address),
    publicUrl,
    realtimeUrl: realtimeUrl(realtimeAddress),
    signUpOpen: settings.signUpOpen,
    dataDir,
    logDir: logs.dir,
    get pids() {
      return { ...servers.pids(), ...running.pids() };
    },
    internal: running.internal,
    metrics: running.metrics,
    stopTimeoutMs: realtimeStopTimeoutMs + stopTimeoutMs + SERVERS_STOP_MS,
    failed,
    stop: () => stops.stop(),
  };
}

async function openLogs(dir: string, reporter: Reporter, disks: DiskReporter): Promise<LogSink> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  return openLogSink(dir, throttleLines(reporter.warn, PROBLEM_LINES_PER_SECOND_MAX), {
    onDiskFull: () => void disks.reportFolder(dir),
  });
}

async function claimAddresses({ HOST, PORT, REALTIME_HOST, REALTIME_PORT }: LauncherSettings) {
  const problems = new Set<string>();
  const claim = async (wanted: ListenAddress) => {
    try {
      return await claimAddress(wanted);
    } catch (err) {
      if (!(err instanceof StartError)) throw err;
      problems.add(err.message);
      return undefined;
    }
  };
  const address = await claim({ host: HOST, port: PORT, settings: { host: 'HOST', port: 'PORT' } });
  const realtimeSettings = { host: REALTIME_HOST === undefined ? 'HOST' : 'REALTIME_HOST', port: 'REALTIME_PORT' };
  const wanted = { host: REALTIME_HOST ?? HOST, port: REALTIME_PORT, settings: realtimeSettings };
  const realtimeAddress = await claim(wanted);
  if (!address || !realtimeAddress) throw new StartError([...problems].join('\n'));
  return { address, realtimeAddress };
}

async function chooseCacheDir(dataDir: string): Promise<string> {
  try {
    await mkdir(CACHE_DIR, { recursive: true });
    await access(CACHE_DIR, constants.W_OK);
    return CACHE_DIR;
  } catch {
    // The dependencies belong to somebody else, as in a container's image.
    return join(dataDir, 'cache');
  }
}

async function loadShape(shape: Shape): Promise<(options: ShapeOptions) => Promise<RunningShape>> {
  if (shape === 'deployed') return (await import('./shape/deployed.ts')).startDeployed;
  return (await import('./shape/standalone.ts')).startStandalone;
}

async function openDataDir(path: string, stops: StopStack): Promise<string> {
  try {
    await makeFolder(resolve(path), 0o711);
    const dataDir = await realpath(resolve(path));
    const lock = await acquireDataDirLock(dataDir);
    stops.push(() => lock.release());
    return dataDir;
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException;
    if (code === undefined) throw err;
    if (saysDiskFull(code)) throw await diskFullError(resolve(path), err);
    throw new StartError(`The data folder ${resolve(path)} can't be used (${code}): check who owns it, or set DATA_DIR.`, {
      cause: err,
    });
  }
}
