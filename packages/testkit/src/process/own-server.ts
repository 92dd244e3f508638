import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A server of one test, for what would disturb others. */
export interface OwnServer {
  /** It stays the same over restarts. */
  readonly url: string;
  /** Stops the server; its data stays. */
  stop(): Promise<void>;
  /** Kills it and its child processes, and resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again with its data. */
  start(): Promise<void>;
  /** Stops it and its child processes by SIGSTOP. */
  freeze(): void;
  thaw(): void;
  /** Ends it and removes its data. */
  remove(): Promise<void>;
}

interface Running {
  readonly pid: number;
  readonly exited: Promise<unknown>;
  stop(): Promise<void>;
}

/** Starts a server with its data in a temporary folder. */
export async function startOwnServer<S extends Running>(
  launch: (dataDir: string, earlier: S | undefined) => Promise<S>,
  urlOf: (server: S) => string,
): Promise<OwnServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-own-'));
  // As root, PostgreSQL runs as another user.
  await chmod(dataDir, 0o711);
  let server = await launch(dataDir, undefined);
  let isRunning = true;
  // The parent first, as it starts others.
  const signalAll = (name: NodeJS.Signals) => {
    for (const pid of [server.pid, ...childrenOf(server.pid)]) signal(pid, name);
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
    url: urlOf(server),
    stop,
    async kill() {
      isRunning = false;
      signalAll('SIGKILL');
      await server.exited;
    },
    async start() {
      server = await launch(dataDir, server);
      isRunning = true;
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
