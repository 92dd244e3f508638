import { mkdir, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { acquireDataDirLock } from '@latchkey/embedded/process/data-dir-lock';
import { DiskFullError, explainFullDisk, isDiskFull } from '@latchkey/embedded/process/disk-full';
import { keepFree } from '@latchkey/embedded/process/free-port';
import { StartError } from '@latchkey/embedded/process/start-error';
import { makeFolder } from '@latchkey/files/storage/object-store/make-folder';
import { claimAddresses } from './addresses.ts';
import { openLogSink } from './log-sink.ts';
import { limitRate, type Reporter } from './reporter.ts';
import { readSecrets } from './secrets.ts';
import type { LauncherSettings } from './settings.ts';

interface Given {
  readonly env: NodeJS.ProcessEnv;
  readonly settings: LauncherSettings;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
  readonly stops: AsyncDisposableStack;
  readonly onDiskFull: (err: DiskFullError) => void;
}

export type Launch = Awaited<ReturnType<typeof prepareLaunch>>;

export interface RunningShape {
  /**
   * Addresses for other services: `host:port` for gRPC, a URL for Connect and gRPC-Web.
   * Empty in one process.
   */
  readonly internal: Readonly<Record<string, { readonly grpc: string; readonly connect: string }>>;
  /** Metrics URLs by process; empty unless METRICS_PORT is set. */
  readonly metrics: Readonly<Record<string, string>>;
}

const PROBLEM_LINES_PER_SECOND_MAX = 5;
/** Limit of a call, or a request without a file, that was accepted. */
const CALL_MS_MAX = 60_000;
/** The time over which realtime spreads the closing of its sockets. */
const SOCKET_DRAIN_MS = 5_000;
/** A little more than a service gives itself for the rest of its stop. */
const SERVICE_STOP_SLACK_MS = 31_000;

/**
 * Locks the data folder, claims the ports, and reads or creates the secrets.
 *
 * @throws {StartError} when one of these fails
 */
export async function prepareLaunch(given: Given) {
  const { env, settings, stops } = given;
  // Before the ports: another Latchkey on the same folder is likely to use the same ones.
  const dataDir = await openDataDir(settings.DATA_DIR, stops);
  keepFree(settings.PORT, settings.REALTIME_PORT, Number(env.METRICS_PORT));
  const { address, realtimeAddress } = await claimAddresses(settings);
  const objectsDir = resolve(settings.OBJECTS_DIR ?? join(dataDir, 'files'));
  const secrets = await explainFullDisk(dataDir, () => readSecrets(dataDir, objectsDir, settings));
  const logs = await explainFullDisk(dataDir, () => openLogs(join(dataDir, 'logs'), given));
  stops.defer(() => logs.close());
  const { promise: failed, resolve: onGiveUp } = Promise.withResolvers<string>();
  return {
    ...given,
    dataDir,
    objectsDir,
    address,
    realtimeAddress,
    secrets,
    logs,
    publicUrl: settings.PUBLIC_URL?.replace(/\/+$/, '') ?? `http://localhost:${address.port}`,
    /** Limit of a service's stop, uploads included. */
    stopTimeoutMs: settings.drainMs + Math.max(settings.uploadDeadlineMs, CALL_MS_MAX) + SERVICE_STOP_SLACK_MS,
    realtimeStopTimeoutMs: SOCKET_DRAIN_MS + SERVICE_STOP_SLACK_MS,
    /** Called when a server or a service fails for good, which resolves `failed`. */
    onGiveUp,
    failed,
  };
}

async function openLogs(dir: string, { reporter, onDiskFull }: Given) {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const onProblem = limitRate(reporter.warn, PROBLEM_LINES_PER_SECOND_MAX);
  return openLogSink(dir, onProblem, () => onDiskFull(new DiskFullError(dir)));
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

export function metricsUrl(port: number): string {
  return `http://127.0.0.1:${port}/metrics`;
}
