import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedPostgres, startPostgres } from '@latchkey/embedded/postgres';

/** A PostgreSQL of a test's own, for what would disturb others. */
export interface OwnPostgres {
  /** The superuser's; the same over every stop and start. */
  readonly url: string;
  /** A fast shutdown. */
  stop(): Promise<void>;
  /** Starts it again with its data, and recovers from a crash where there was one. */
  start(): Promise<void>;
  /** Ends it, with everything that works for it, as the loss of its machine does. */
  kill(): Promise<void>;
  /** Holds it where it is, with everything that works for it. */
  freeze(): void;
  thaw(): void;
  /** Ends it and removes its data. */
  remove(): Promise<void>;
}

/** Connections that it takes at once. */
const CONNECTIONS_MAX = 300;

/** Starts a PostgreSQL of one's own, as careful for its data as that of a deployment, in some seconds. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-postgres-'));
  await chmod(dataDir, 0o711);
  const launch = (port?: number): Promise<EmbeddedPostgres> =>
    startPostgres({ dataDir, connectionsMax: CONNECTIONS_MAX, removeDirWhenOrphaned: dataDir, ...(port && { port }) });
  let server = await launch();
  let isRunning = true;
  // Whoever would start others is told first when all are held, and last when they go on.
  const all = () => [server.pid, ...childrenOf(server.pid)];
  const thaw = () => {
    if (isRunning) for (const pid of all().reverse()) signal(pid, 'SIGCONT');
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
      for (const pid of all()) signal(pid, 'SIGKILL');
      await server.exited;
    },
    freeze() {
      signal(server.pid, 'SIGSTOP');
      for (const pid of childrenOf(server.pid)) signal(pid, 'SIGSTOP');
    },
    thaw,
    async remove() {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Processes that another one has started, each of which may be gone by now. */
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
