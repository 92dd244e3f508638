import { realpath } from 'node:fs/promises';
import { explainFullDisk } from './disk-full.ts';
import { findFreePort } from './free-port.ts';
import { ensureCluster } from './postgres-cluster.ts';
import { type PostgresHome, preparePostgresHome, SHARED_ROOT } from './postgres-home.ts';
import { endLeftoverPostgres, readPostmasterFile } from './postgres-leftover.ts';
import { type ProcessExit, runServer, type ServerProcess } from './server-process.ts';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

export interface StartPostgresOptions {
  /** The folder below which everything of the database goes. It must exist. */
  dataDir: string;
  /**
   * Where data and binaries go as root, when the user that the server then runs as can't reach them at their usual
   * place; `/var/lib/latchkey` by default.
   */
  sharedRoot?: string;
  /** The port to listen on, for a restart under the same URL; a free one by default. */
  port?: number | undefined;
  /** `false` trades safety for speed, for tests: nothing survives a crash of the machine. */
  durable?: boolean;
  /** The most connections at once; 100 by default. */
  connectionsMax?: number;
  /** How long the server may take until it answers, recovery after a crash included; 120 seconds by default. */
  startTimeoutMs?: number;
  /** Gets a sentence for each step that takes long or deserves to be known. */
  onProgress?: ((line: string) => void) | undefined;
  /** Gets each line that the server logs. */
  onLog?: ((line: string) => void) | undefined;
  /** A folder that goes away with the server if this process does not live to remove it. */
  removeDirWhenOrphaned?: string | undefined;
}

/** A running PostgreSQL that listens on 127.0.0.1 only. */
export interface EmbeddedPostgres {
  readonly pid: number;
  readonly port: number;
  /** The password of the superuser, `postgres`. */
  readonly password: string;
  /** The file that holds the passwords of this cluster. */
  readonly credentialsPath: string;
  /** Resolves when the server has ended, for whatever reason. */
  readonly exited: Promise<ProcessExit>;
  /** The superuser's URL; of the database `postgres` by default. */
  url(database?: string): string;
  /** A fast shutdown: ends open connections, loses nothing that was committed. */
  stop(): Promise<void>;
}

const PORT_TRIES_MAX = 5;
const ORPHANED_BACKENDS_TIMEOUT_MS = 15_000;

/**
 * Starts the PostgreSQL of a data folder, creating it the first time, ending a leftover of an earlier run, and
 * recovering from whatever that one was in the middle of. The caller holds the folder's lock (`acquireDataDirLock`).
 *
 * @throws {DiskFullError} when its disk is full
 * @throws {StartError} when it can't be started.
 */
export async function startPostgres(options: StartPostgresOptions): Promise<EmbeddedPostgres> {
  const home = await preparePostgresHome({
    dataDir: await realpath(options.dataDir),
    sharedRoot: options.sharedRoot ?? SHARED_ROOT,
    onProgress: options.onProgress,
  });
  return explainFullDisk(home.dir, () => startIn(home, options));
}

async function startIn(home: PostgresHome, options: StartPostgresOptions): Promise<EmbeddedPostgres> {
  const { superuser: password } = await ensureCluster(home, { durable: options.durable ?? true, onProgress: options.onProgress });
  await endLeftoverPostgres(home.clusterDir, options.onProgress);
  const { server, port } = await startWithRetries(home, options);
  return {
    pid: server.pid,
    port,
    password,
    credentialsPath: home.credentialsPath,
    exited: server.exited,
    url: (database = 'postgres') => `postgresql://postgres:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`,
    stop: () => server.stop(),
  };
}

async function startWithRetries(
  home: PostgresHome,
  options: StartPostgresOptions,
): Promise<{ server: ServerProcess; port: number }> {
  const backendsDeadline = performance.now() + ORPHANED_BACKENDS_TIMEOUT_MS;
  for (let portTries = 1; ; ) {
    const port = options.port ?? (await findFreePort());
    const server = await runServer({
      command: home.binaries.postgres,
      args: ['-D', home.clusterDir, ...settings(port, options)],
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
    const failure = await waitForReady(server, home, options.startTimeoutMs ?? 120_000);
    if (!failure) return { server, port };
    if (/pre-existing shared memory block/.test(failure) && performance.now() < backendsDeadline) {
      // Backends of a killed server take a moment to notice that it is gone.
      await waitUntil(() => false, { timeoutMs: 100 });
      continue;
    }
    if (/Address already in use/.test(failure) && portTries < PORT_TRIES_MAX) {
      portTries += 1;
      if (options.port !== undefined) await waitUntil(() => false, { timeoutMs: 200 });
      continue;
    }
    const reason = failure.split('\n').findLast((line) => /FATAL|PANIC|could not/.test(line)) ?? failure.split('\n').at(-1);
    throw new StartError(
      `PostgreSQL did not start: ${reason?.replace(/^.*?(FATAL|PANIC):\s*/, '') || 'it ended without a message'}.`,
      {
        detail: server.recentLines(),
      },
    );
  }
}

function settings(port: number, { durable = true, connectionsMax = 100 }: StartPostgresOptions): string[] {
  const values: Record<string, string | number> = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: connectionsMax,
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** @returns nothing once the server accepts connections, otherwise what it said before it ended. */
async function waitForReady(server: ServerProcess, home: PostgresHome, timeoutMs: number): Promise<string | undefined> {
  let ended = false;
  void server.exited.then(() => {
    ended = true;
  });
  const ready = await waitUntil(
    async () => {
      if (ended) return 'ended';
      const file = await readPostmasterFile(home.clusterDir);
      return file?.pid === server.pid && file.ready ? 'ready' : undefined;
    },
    { timeoutMs, intervalMs: 10 },
  );
  if (ready === 'ready') return undefined;
  if (ready === undefined) await server.stop();
  const lines = server.recentLines().join('\n');
  return ready === undefined ? `${lines}\nit was not ready after ${timeoutMs / 1_000} seconds` : lines;
}
