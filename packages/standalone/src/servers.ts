import { join } from 'node:path';
import { saysDiskFull } from '@latchkey/embedded/disk-full';
import { type EmbeddedPostgres, startPostgres } from '@latchkey/embedded/postgres';
import { type EmbeddedRedis, startRedis } from '@latchkey/embedded/redis';
import { findClusterDir } from '@latchkey/embedded/running-postgres';
import { ensureServiceDatabases } from '@latchkey/embedded/service-databases';
import type { DiskReporter } from './disk-reporter.ts';
import { checkPostgres, checkRedis } from './external-servers.ts';
import type { LogSink } from './log-sink.ts';
import type { Reporter } from './reporter.ts';
import type { LauncherSettings } from './settings.ts';
import { type Supervisable, type Supervised, supervise } from './supervise.ts';

const DATABASE_SERVICES = ['identity', 'apps', 'files'] as const;

/** The services that have a database. */
export type DatabaseService = (typeof DATABASE_SERVICES)[number];

/** The PostgreSQL and the Redis that the services use, embedded or given. */
export interface Servers {
  readonly databaseUrls: Readonly<Record<DatabaseService, string>>;
  readonly redisUrl: string;
}

export interface OpenServersOptions {
  settings: LauncherSettings;
  dataDir: string;
  /** Where a downloaded Redis is stored. */
  cacheDir: string;
  reporter: Reporter;
  logs: LogSink;
  stops: AsyncDisposableStack;
  /** Throws when the start was cancelled. */
  checkWanted: () => void;
  onGiveUp: (line: string) => void;
  disks: DiskReporter;
}

/** Starts a PostgreSQL and a Redis, or checks those that the settings name. */
export async function openServers(options: OpenServersOptions): Promise<Servers> {
  const { settings, dataDir, cacheDir, reporter, checkWanted } = options;
  const { DATABASE_URL, REDIS_URL } = settings;
  const postgres = await openServer<EmbeddedPostgres>(options, {
    name: 'PostgreSQL',
    given: DATABASE_URL,
    setting: 'DATABASE_URL',
    check: checkPostgres,
    folder: () => findClusterDir(dataDir),
    start: (previous, onLog) => startPostgres({ dataDir, port: previous?.port, onProgress: reporter.note, onLog }),
  });
  checkWanted();
  const redis = await openServer<EmbeddedRedis>(options, {
    name: 'Redis',
    given: REDIS_URL,
    setting: 'REDIS_URL',
    check: checkRedis,
    folder: async () => join(dataDir, 'redis'),
    start: (previous, onLog) => startRedis({ dataDir, cacheDir, address: previous, onProgress: reporter.note, onLog }),
  });
  checkWanted();
  const databaseUrls = postgres
    ? await ensureServiceDatabases(postgres.current, DATABASE_SERVICES)
    : { identity: DATABASE_URL ?? '', apps: DATABASE_URL ?? '', files: DATABASE_URL ?? '' };
  return {
    databaseUrls,
    redisUrl: redis?.current.url ?? REDIS_URL ?? '',
  };
}

interface ServerKind<T> {
  readonly name: string;
  /** The URL of a server that is used instead, from this setting. */
  readonly given: string | undefined;
  readonly setting: string;
  readonly check: (url: string) => Promise<void>;
  /** The folder of its data. */
  readonly folder: () => Promise<string>;
  readonly start: (previous: T | undefined, onLog: (line: string) => void) => Promise<T>;
}

/** @returns undefined where a server was given */
async function openServer<T extends Supervisable & { readonly port: number }>(
  { reporter, logs, stops, onGiveUp, disks }: OpenServersOptions,
  { name, given, setting, check, folder, start }: ServerKind<T>,
): Promise<Supervised<T> | undefined> {
  if (given !== undefined) {
    const describe = () => `as ${setting} says, ${new URL(given).host}`;
    await reporter.step(name, () => check(given), describe);
    return undefined;
  }
  const onLog = (line: string) => {
    logs.writeText(name.toLowerCase(), line);
    if (saysDiskFull(line)) void folder().then(disks.reportFolder, () => {});
  };
  const callbacks = { onRestart: reporter.warn, onDiskFull: disks.report, onGiveUp };
  const supervised = await reporter.step(
    name,
    () => supervise<T>({ name, start: (previous) => start(previous, onLog), ...callbacks }),
    ({ current }) => `127.0.0.1:${current.port}`,
  );
  stops.defer(() => supervised.stop());
  return supervised;
}
