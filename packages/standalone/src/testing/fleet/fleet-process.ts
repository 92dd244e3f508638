import { type FileHandle, open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type ProcessExit, runServer, type ServerProcess } from '@latchkey/embedded/server-process';
import { eventually } from '@latchkey/testkit/eventually';
import type { Balancer, BalancerTarget } from './balancer.ts';

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 1_000;

/** Services that a fleet has processes of. */
export type FleetService = 'apps' | 'identity' | 'files' | 'avatar-worker' | 'gateway' | 'realtime';

/** What one process of a fleet is. */
export interface FleetProcessOptions {
  /** Such as `apps-1`. */
  readonly name: string;
  readonly service: FleetService;
  /** Its settings, and nothing else of the environment. */
  readonly env: NodeJS.ProcessEnv;
  /** Where it answers `/healthz` and `/readyz`, without TLS. */
  readonly probeUrl: string;
  /** Where its own port answers; for the gateway the REST interface, for the others Connect. */
  readonly url: string;
  /** `host:port` of gRPC; the gateway has none. */
  readonly grpc?: string;
  /** Balancers that give it connections, and the port of it that each gives them to. */
  readonly behind: ReadonlyArray<{ readonly balancer: Balancer; readonly port: number }>;
  readonly logDir: string;
  /** Removed if we do not live to do it. */
  readonly dir: string;
}

/** A process of a fleet: to be stopped, killed, frozen and started again, on the same ports. */
export class FleetProcess {
  readonly name: string;
  readonly service: FleetService;
  readonly url: string;
  readonly grpc: string | undefined;
  readonly #options: FleetProcessOptions;
  readonly #targets: ReadonlyArray<{ readonly balancer: Balancer; readonly target: BalancerTarget }>;
  #env: NodeJS.ProcessEnv;
  #process: ServerProcess | undefined;
  #log: FileHandle | undefined;

  constructor(options: FleetProcessOptions) {
    this.name = options.name;
    this.service = options.service;
    this.url = options.url;
    this.grpc = options.grpc;
    this.#options = options;
    this.#env = options.env;
    const isReady = () => this.isReady();
    this.#targets = options.behind.map(({ balancer, port }) => ({ balancer, target: { port, isReady } }));
  }

  /** Pid of the process that runs, or ran last. */
  get pid(): number {
    return this.#running.pid;
  }

  /** Resolves once the process that runs has ended. */
  get exited(): Promise<ProcessExit> {
    return this.#running.exited;
  }

  /** The last lines that it has printed. */
  get lines(): readonly string[] {
    return this.#running.recentLines();
  }

  /** Connections that its balancers have given it since it was started. */
  get accepted(): number {
    return this.#targets.reduce((sum, { balancer, target }) => sum + balancer.accepted(target), 0);
  }

  /** Whether it says so itself, within a second. */
  async isReady(): Promise<boolean> {
    return (await this.probe('/readyz')) === 200;
  }

  /** Status of one of its probes; undefined where there is no answer within a second. */
  async probe(path: '/healthz' | '/readyz'): Promise<number | undefined> {
    try {
      const response = await fetch(this.#options.probeUrl + path, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
      await response.body?.cancel();
      return response.status;
    } catch {
      return undefined;
    }
  }

  /** Starts the process and does not wait for it. The balancers give it connections from when it is ready. */
  async launch(env: NodeJS.ProcessEnv = {}): Promise<void> {
    this.#env = { ...this.#env, ...env };
    const { name, logDir, dir } = this.#options;
    this.#log ??= await open(`${logDir}/${name}.log`, 'a');
    const log = this.#log;
    this.#process = await runServer({
      command: process.execPath,
      args: argumentsOf(this.service),
      cwd: ROOT,
      env: this.#env,
      stopSteps: [
        ['SIGTERM', STOP_TIMEOUT_MS],
        ['SIGKILL', 5_000],
      ],
      // What is written after the file was closed is of no use to anybody.
      onLine: (line) => void log.write(`${line}\n`).catch(() => undefined),
      removeDirWhenOrphaned: dir,
    });
    for (const { balancer, target } of this.#targets) balancer.add(target);
  }

  /**
   * Starts the process and waits until it is ready.
   *
   * @param env settings in the place of those it had
   */
  async start(env: NodeJS.ProcessEnv = {}): Promise<void> {
    await this.launch(env);
    await this.ready();
  }

  /** Waits until it is ready and its balancers know, and fails with what it said last where it ends or takes too long. */
  async ready(timeoutMs = START_TIMEOUT_MS): Promise<void> {
    const started = this.#running;
    let ended = false;
    void started.exited.then(() => {
      ended = true;
    });
    const serves = async () => (await this.isReady()) && this.#targets.every(({ balancer, target }) => balancer.serves(target));
    const isReady = await eventually(async () => ended || (await serves()), { timeoutMs, intervalMs: 25 }).catch(() => false);
    if (ended || !isReady) throw new Error(`${this.name} is not ready:\n${started.recentLines().join('\n')}`);
  }

  /** Takes it from its balancers, as a rolling restart does, and sends SIGTERM. Resolves when it has ended, with how. */
  async stop(): Promise<ProcessExit> {
    this.#leave();
    await this.#running.stop();
    return this.#running.exited;
  }

  /** Ends it as a crash does: the balancers find out by themselves. Resolves when it is gone. */
  async kill(): Promise<void> {
    process.kill(this.pid, 'SIGKILL');
    await this.exited;
    // What is started in its place begins anew.
    this.#leave();
  }

  /** Holds it where it is: connections stay open, and nothing is answered. */
  freeze(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** {@link stop} and {@link start}. */
  async restart(env: NodeJS.ProcessEnv = {}): Promise<void> {
    await this.stop();
    await this.start(env);
  }

  /** Ends it, however it is, and closes its log. */
  async remove(): Promise<void> {
    this.#leave();
    await this.#process?.stop();
    await this.#log?.close();
  }

  get #running(): ServerProcess {
    if (!this.#process) throw new Error(`${this.name} has not been started`);
    return this.#process;
  }

  #leave(): void {
    for (const { balancer, target } of this.#targets) balancer.remove(target);
  }
}

function argumentsOf(service: FleetService): string[] {
  const isWorker = service === 'avatar-worker';
  return [`${ROOT}services/${isWorker ? 'files' : service}/src/main.ts`, ...(isWorker ? ['avatar-worker'] : [])];
}
