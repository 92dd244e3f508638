import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedPostgres, startPostgres } from '@latchkey/embedded/postgres';

/** A PostgreSQL of one test, for what would disturb others. */
export interface OwnPostgres {
  /** The superuser's; it stays the same over restarts. */
  readonly url: string;
  /** A fast shutdown. */
  stop(): Promise<void>;
  /** Starts it again with its data, after a crash too. */
  start(): Promise<void>;
  /** Kills it and its child processes. */
  kill(): Promise<void>;
  /** Stops it and its child processes by SIGSTOP. */
  freeze(): void;
  thaw(): void;
  /** Ends it and removes its data. */
  remove(): Promise<void>;
}

/** Starts a PostgreSQL that is as durable as that of a deployment, in a few seconds. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-postgres-'));
  await chmod(dataDir, 0o711);
  const launch = (port?: number): Promise<EmbeddedPostgres> =>
    startPostgres({ dataDir, connectionsMax: 300, removeDirWhenOrphaned: dataDir, ...(port && { port }) });
  let server = await launch();
  let isRunning = true;
  // The parent first, as it starts others.
  const signalAll = (name: NodeJS.Signals) => {
    signal(server.pid, name);
    for (const pid of childrenOf(server.pid)) signal(pid, name);
  };
  const thaw = () => {
    if (isRunning) signalAll('SIGCONT');
  };
  const stop = async () => {
    thaw();
    isRunning = false;
    await server.stop();
  };
  return {
    url: server.url(),
    stop,
    async start() {
      server = await launch(server.port);
      isRunning = true;
    },
    async kill() {
      isRunning = false;
      signalAll('SIGKILL');
      await server.exited;
    },
    freeze: () => signalAll('SIGSTOP'),
    thaw,
    async remove() {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function childrenOf(parent: number): number[] {
  const pids = readdirSync('/proc').map(Number);
  return pids.filter((pid) => pid > 0 && parentOf(pid) === parent);
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
