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
import type { StopStack } from './stop-stack.ts';
import { supervise } from './supervise.ts';

const DATABASE_SERVICES = ['identity', 'apps', 'files'] as const;

/** Which services have a database. */
export type DatabaseService = (typeof DATABASE_SERVICES)[number];

/** The database and the Redis that the services use: given ones, or ones of ours. */
export interface Servers {
  readonly databaseUrls: Readonly<Record<DatabaseService, string>>;
  readonly redisUrl: string;
  /** Pids of those that are ours. */
  pids(): Record<string, number>;
}

export interface OpenServersOptions {
  settings: LauncherSettings;
  dataDir: string;
  /** Where a downloaded Redis is kept. */
  cacheDir: string;
  reporter: Reporter;
  logs: LogSink;
  stops: StopStack;
  /** Throws when the start is no longer wanted. */
  checkWanted: () => void;
  onGiveUp: (line: string) => void;
  disks: DiskReporter;
}

/** Makes sure of a PostgreSQL and a Redis. */
export async function openServers(options: OpenServersOptions): Promise<Servers> {
  const database = await openDatabase(options);
  options.checkWanted();
  const redis = await openRedis(options);
  options.checkWanted();
  return {
    databaseUrls: database.urls,
    redisUrl: redis.url,
    pids: () => ({ ...database.pids(), ...redis.pids() }),
  };
}

async function openDatabase(options: OpenServersOptions) {
  const { settings, dataDir, reporter, logs, stops, onGiveUp, disks } = options;
  const given = settings.DATABASE_URL;
  if (given !== undefined) {
    await reporter.step(
      'PostgreSQL',
      () => checkPostgres(given),
      () => `as DATABASE_URL says, ${new URL(given).host}`,
    );
    const urls = Object.fromEntries(DATABASE_SERVICES.map((name) => [name, given])) as Record<DatabaseService, string>;
    return { urls, pids: () => ({}) };
  }
  const start = (previous: EmbeddedPostgres | undefined) =>
    startPostgres({
      dataDir,
      port: previous?.port,
      onProgress: reporter.note,
      onLog: (line) => {
        logs.writeText('postgresql', line);
        if (saysDiskFull(line)) void findClusterDir(dataDir).then(disks.reportFolder, () => {});
      },
    });
  return reporter.step(
    'PostgreSQL',
    async () => {
      const supervised = await supervise({
        name: 'PostgreSQL',
        start,
        onRestart: reporter.warn,
        onDiskFull: disks.report,
        onGiveUp,
      });
      stops.push(() => supervised.stop());
      const urls = await ensureServiceDatabases(supervised.current, DATABASE_SERVICES);
      return { urls, port: supervised.current.port, pids: () => ({ postgresql: supervised.current.pid }) };
    },
    ({ port }) => `127.0.0.1:${port}`,
  );
}

async function openRedis(options: OpenServersOptions) {
  const { settings, dataDir, cacheDir, reporter, logs, stops, onGiveUp, disks } = options;
  const given = settings.REDIS_URL;
  if (given !== undefined) {
    await reporter.step(
      'Redis',
      () => checkRedis(given),
      () => `as REDIS_URL says, ${new URL(given).host}`,
    );
    return { url: given, pids: () => ({}) };
  }
  const start = (previous: EmbeddedRedis | undefined) =>
    startRedis({
      dataDir,
      cacheDir,
      address: previous,
      onProgress: reporter.note,
      onLog: (line) => {
        logs.writeText('redis', line);
        if (saysDiskFull(line)) void disks.reportFolder(join(dataDir, 'redis'));
      },
    });
  return reporter.step(
    'Redis',
    async () => {
      const supervised = await supervise({ name: 'Redis', start, onRestart: reporter.warn, onDiskFull: disks.report, onGiveUp });
      stops.push(() => supervised.stop());
      return { url: supervised.current.url, port: supervised.current.port, pids: () => ({ redis: supervised.current.pid }) };
    },
    ({ port }) => `127.0.0.1:${port}`,
  );
}
