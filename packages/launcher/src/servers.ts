import { access, constants, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type EmbeddedPostgres, startPostgres } from '@latchkey/embedded/postgres/postgres';
import { findClusterDir } from '@latchkey/embedded/postgres/running-postgres';
import { ensureServiceDatabases } from '@latchkey/embedded/postgres/service-databases';
import { DiskFullError, isDiskFull } from '@latchkey/embedded/process/disk-full';
import { type EmbeddedRedis, startRedis } from '@latchkey/embedded/redis/redis';
import { databaseHosts } from '@latchkey/kit/database/database-url';
import { givenRedisUrls, redisHosts } from '@latchkey/kit/redis/redis-url';
import { checkPostgres, checkRedis } from './external-servers.ts';
import type { Launch } from './launch.ts';
import { ROOT } from './program.ts';
import { type Supervisable, supervise } from './supervise.ts';

const DATABASE_SERVICES = ['identity', 'apps', 'files'] as const;

/** A downloaded Redis is stored with the other dependencies. */
const CACHE_DIR = `${ROOT}node_modules/.cache/latchkey`;

export type DatabaseService = (typeof DATABASE_SERVICES)[number];

export type Servers = Awaited<ReturnType<typeof openServers>>;

export async function openServers(launch: Launch) {
  const { settings, dataDir, reporter, signal } = launch;
  const { DATABASE_URL, REDIS_URL } = settings;
  const postgres = await openServer<EmbeddedPostgres>(launch, {
    name: 'PostgreSQL',
    setting: 'DATABASE_URL',
    hosts: databaseHosts,
    check: checkPostgres,
    folder: () => findClusterDir(dataDir),
    start: (previous, onLog) => startPostgres({ dataDir, port: previous?.port, onProgress: reporter.note, onLog }),
  });
  signal.throwIfAborted();
  const cacheDir = await chooseCacheDir(dataDir);
  const redis = await openServer<EmbeddedRedis>(launch, {
    name: 'Redis',
    setting: 'REDIS_URL',
    hosts: redisHosts,
    check: (url) => checkRedis(url),
    folder: async () => join(dataDir, 'redis'),
    start: (previous, onLog) => startRedis({ dataDir, cacheDir, address: previous, onProgress: reporter.note, onLog }),
  });
  for (const [setting, url] of givenRedisUrls(settings).filter(([name]) => name !== 'REDIS_URL')) {
    await reporter.step(
      'Redis',
      () => checkRedis(url, setting),
      () => `as ${setting} says, ${redisHosts(url)}`,
    );
  }
  signal.throwIfAborted();
  const databaseUrls = postgres
    ? await ensureServiceDatabases(postgres.current, DATABASE_SERVICES)
    : { identity: DATABASE_URL ?? '', apps: DATABASE_URL ?? '', files: DATABASE_URL ?? '' };
  return { databaseUrls, redisUrl: redis?.current.url ?? REDIS_URL ?? '' };
}

async function chooseCacheDir(dataDir: string): Promise<string> {
  try {
    await mkdir(CACHE_DIR, { recursive: true });
    await access(CACHE_DIR, constants.W_OK);
    return CACHE_DIR;
  } catch {
    // The dependencies belong to another user, as in an image.
    return join(dataDir, 'cache');
  }
}

interface ServerKind<T> {
  readonly name: string;
  readonly setting: 'DATABASE_URL' | 'REDIS_URL';
  readonly hosts: (url: string) => string;
  readonly check: (url: string) => Promise<void>;
  readonly folder: () => Promise<string>;
  readonly start: (previous: T | undefined, onLog: (line: string) => void) => Promise<T>;
}

/** @returns undefined where a server was given */
async function openServer<T extends Supervisable & { readonly port: number }>(
  { settings, reporter, logs, stops, onGiveUp, onDiskFull }: Launch,
  { name, setting, hosts, check, folder, start }: ServerKind<T>,
) {
  const given = settings[setting];
  if (given !== undefined) {
    const describe = () => `as ${setting} says, ${hosts(given)}`;
    await reporter.step(name, () => check(given), describe);
    return undefined;
  }
  const onLog = (line: string) => {
    logs.writeText(name.toLowerCase(), line);
    if (isDiskFull(line)) void folder().then((dir) => onDiskFull(new DiskFullError(dir)));
  };
  const callbacks = { onRestart: reporter.warn, onDiskFull, onGiveUp };
  const supervised = await reporter.step(
    name,
    () => supervise<T>({ name, start: (previous) => start(previous, onLog), ...callbacks }),
    ({ current }) => `127.0.0.1:${current.port}`,
  );
  stops.defer(() => supervised.stop());
  return supervised;
}
