import { findServiceDatabase } from '@latchkey/embedded/running-postgres';
import { eventually } from '@latchkey/testkit/eventually';
import type { Shape } from '../../settings.ts';
import { GENEROUS_LIMITS } from '../instance.ts';
import { createDataDir, type Launched, launch } from '../launched.ts';
import { processesOn, serviceProcessesOf } from '../processes-on.ts';

/** What can be killed: one process, or all of them and their launcher at once. */
export const VICTIMS = {
  standalone: ['postgres', 'redis', 'launcher', 'everything'],
  deployed: ['gateway', 'files', 'apps', 'identity', 'postgres', 'redis', 'launcher', 'everything'],
} as const;

export type Victim = (typeof VICTIMS)[Shape][number];

/** Longest time until everything answers again, in milliseconds, on a machine with other work to do. */
const UP_AGAIN_MS_MAX = 90_000;

const START_TRIES_MAX = 3;

/** How often one process may be killed before its launcher may give it up, with room for what it ends by itself. */
const KILLS_PER_LAUNCH_MAX = 3;

/** A Latchkey with servers and a data folder of its own, to be killed and started again on the same folder. */
export class Subject {
  readonly shape: Shape;
  readonly #env: NodeJS.ProcessEnv;
  #dir: Awaited<ReturnType<typeof createDataDir>> | undefined;
  #launched: Launched | undefined;
  #port = 0;
  #kills = new Map<Victim, number>();

  constructor(shape: Shape, env: NodeJS.ProcessEnv) {
    this.shape = shape;
    this.#env = env;
  }

  /** The gateway's port, which a new start changes. */
  get port(): number {
    return this.#port;
  }

  get dataDir(): string {
    return this.#dir?.path ?? '';
  }

  /** Folder of the files on disk. */
  get objectsDir(): string {
    return `${this.dataDir}/files`;
  }

  async start(): Promise<void> {
    this.#dir ??= await createDataDir();
    this.#kills = new Map();
    const args = this.shape === 'deployed' ? ['--deployed'] : [];
    const env = { ...GENEROUS_LIMITS, HOST: '127.0.0.1', PORT: '0', REALTIME_PORT: '0', DATA_DIR: this.dataDir, ...this.#env };
    for (let tries = 1; ; tries += 1) {
      this.#launched = launch(env, args);
      try {
        this.#port = Number(new URL(await this.#launched.running).port);
        return;
      } catch (err) {
        // Another process of a machine that is full of them was faster with a port that had been free.
        if (!this.output().includes('EADDRINUSE') || tries === START_TRIES_MAX) throw err;
      }
    }
  }

  /** What its launcher printed since the last start. */
  output(): string {
    return this.#launched?.output() ?? '';
  }

  /** Whether a process may be killed once more without being given up. */
  mayKill(victim: Victim): boolean {
    return (this.#kills.get(victim) ?? 0) < KILLS_PER_LAUNCH_MAX;
  }

  /** Kills it, if it runs at this moment; who was launched is to be started again by {@link restart}. */
  kill(victim: Victim): boolean {
    this.#kills.set(victim, (this.#kills.get(victim) ?? 0) + 1);
    const launcher = this.#launched?.process.pid;
    if (launcher === undefined) return false;
    const others = [...serviceProcessesOf(launcher), ...processesOn(this.dataDir)];
    const one = others.filter(([name]) => name === victim).map(([, pid]) => pid);
    const all = [launcher, ...others.map(([, pid]) => pid)];
    const pids = victim === 'everything' ? all : victim === 'launcher' ? [launcher] : one;
    return pids.map(killed).includes(true);
  }

  /** Starts again after the launcher was killed, on the same data. */
  async restart(): Promise<void> {
    await this.#launched?.exited;
    await this.start();
  }

  /** Resolves when every process runs and answers. */
  async allUp(): Promise<void> {
    const services = this.shape === 'deployed' ? 5 : 0;
    const look = async () => {
      const running = serviceProcessesOf(this.#launched?.process.pid ?? 0).length;
      if (running !== services || processesOn(this.dataDir).length !== 2) return false;
      const ready = await fetch(`http://127.0.0.1:${this.port}/readyz`, { signal: AbortSignal.timeout(5_000) });
      await ready.body?.cancel();
      return ready.ok;
    };
    await eventually(look, { timeoutMs: UP_AGAIN_MS_MAX, intervalMs: 50 }).catch((err: Error) => {
      throw new Error(`not everything came up again (${err.message}): ${this.output()}`);
    });
  }

  /** URL of the database that holds the files, for one who looks and changes nothing. */
  async databaseUrl(): Promise<string> {
    const url = await findServiceDatabase(this.dataDir, 'files');
    if (url === undefined) throw new Error('PostgreSQL does not run');
    return url;
  }

  /** Ends it in order and removes its data, unless they are to be kept. */
  async remove({ keep = false } = {}): Promise<void> {
    this.#launched?.signal('SIGTERM');
    await this.#launched?.exited;
    if (this.#dir === undefined) return;
    await eventually(() => processesOn(this.dataDir).length === 0, { timeoutMs: UP_AGAIN_MS_MAX, intervalMs: 50 });
    if (!keep) await this.#dir.remove();
  }
}

function killed(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}
