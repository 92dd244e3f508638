import { realpath } from 'node:fs/promises';
import { explainFullDisk } from '../process/disk-full.ts';
import { findFreePort } from '../process/free-port.ts';
import { type DataServerOptions, runServer, waitUntilReady } from '../process/server-process.ts';
import { StartError } from '../process/start-error.ts';
import { waitUntil } from '../process/wait-until.ts';
import { ensureCluster } from './postgres-cluster.ts';
import { type PostgresHome, preparePostgresHome, SHARED_ROOT } from './postgres-home.ts';
import { endLeftoverPostgres, readPostmasterFile } from './postgres-leftover.ts';

export interface StartPostgresOptions extends DataServerOptions {
  /** See {@link SHARED_ROOT}. */
  sharedRoot?: string;
  /** The port to listen on, for a restart with the same URL; a free one by default. */
  port?: number | undefined;
  connectionsMax?: number;
}

export type EmbeddedPostgres = Awaited<ReturnType<typeof startPostgres>>;

const PORT_TRIES_MAX = 5;
/** Recovery after a crash included. */
const START_TIMEOUT_MS = 120_000;
const ORPHANED_BACKENDS_TIMEOUT_MS = 15_000;

/**
 * Starts the PostgreSQL of a data folder. Creates it the first time, ends a leftover of an earlier
 * run, and recovers after a crash. The caller holds the folder's lock (`acquireDataDirLock`).
 *
 * @throws {DiskFullError} when its disk is full
 * @throws {StartError} when it can't be started
 */
export async function startPostgres(options: StartPostgresOptions) {
  const { sharedRoot = SHARED_ROOT, onProgress } = options;
  const home = await preparePostgresHome(await realpath(options.dataDir), sharedRoot, onProgress);
  return explainFullDisk(home.dir, () => startIn(home, options));
}

async function startIn(home: PostgresHome, options: StartPostgresOptions) {
  const { durable = true, onProgress } = options;
  const { superuser: password } = await ensureCluster(home, { durable, onProgress });
  await endLeftoverPostgres(home.clusterDir, onProgress);
  const { server, port } = await startWithRetries(home, options);
  const url = (database = 'postgres') => `postgresql://postgres:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
  return { ...server, port, password, credentialsPath: home.credentialsPath, url };
}

async function startWithRetries(home: PostgresHome, options: StartPostgresOptions) {
  const backendsDeadline = performance.now() + ORPHANED_BACKENDS_TIMEOUT_MS;
  for (let portTries = 1; ; ) {
    const port = options.port ?? (await findFreePort());
    const server = await runPostgres(home, port, options);
    const isReady = async () => {
      const file = await readPostmasterFile(home.clusterDir);
      return file?.pid === server.pid && file.ready;
    };
    if (await waitUntilReady(server, isReady, START_TIMEOUT_MS)) return { server, port };
    await server.stop();
    const lines = server.recentLines();
    const hasLogged = (text: string) => lines.some((line) => line.includes(text));
    // Backends of a killed server take a moment to notice that it is gone.
    const waitsForBackends = hasLogged('pre-existing shared memory block') && performance.now() < backendsDeadline;
    if (!waitsForBackends && (!hasLogged('Address already in use') || portTries === PORT_TRIES_MAX)) {
      const line = lines.findLast((line) => /FATAL|PANIC|could not/.test(line)) ?? lines.at(-1);
      const reason = line?.replace(/^.*?(FATAL|PANIC):\s*/, '') ?? `it was not ready within ${START_TIMEOUT_MS / 1_000} seconds`;
      throw new StartError(`PostgreSQL did not start: ${reason}.`, { detail: lines });
    }
    if (!waitsForBackends) portTries += 1;
    await waitUntil(() => false, { timeoutMs: 100 });
  }
}

function runPostgres(home: PostgresHome, port: number, options: StartPostgresOptions) {
  const { durable = true, connectionsMax = 100 } = options;
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: connectionsMax,
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(!durable && { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  };
  return runServer({
    command: home.binaries.postgres,
    args: ['-D', home.clusterDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    cwd: home.clusterDir,
    env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
    user: home.user,
    stopSteps: [
      ['SIGINT', 15_000],
      ['SIGQUIT', 5_000],
      ['SIGKILL', 5_000],
    ],
    onLine: options.onLog,
    removeDirWhenOrphaned: options.removeDirWhenOrphaned,
  });
}
