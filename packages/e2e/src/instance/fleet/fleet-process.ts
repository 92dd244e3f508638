import { type FileHandle, open } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { createSecureContext, type SecureContext } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { type ProcessExit, runServer, type ServerProcess } from '@latchkey/embedded/process/server-process';
import { eventually } from '@latchkey/testkit/eventually';
import type { Balancer, BalancerTarget } from './balancer.ts';

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 1_000;

export type FleetService = 'apps' | 'identity' | 'files' | 'avatar-worker' | 'gateway' | 'realtime';

export interface FleetProcessOptions {
  /** Such as `apps-1`. */
  readonly name: string;
  readonly service: FleetService;
  /** Its whole environment. */
  readonly env: NodeJS.ProcessEnv;
  /** REST for the gateway, Connect for the others. */
  readonly url: string;
  /** `host:port` of gRPC; the gateway has none. */
  readonly grpc?: string;
  /** Gives it connections, at this port. */
  readonly behind?: { readonly balancer: Balancer; readonly port: number } | undefined;
  /** A certificate that the process accepts, where it speaks TLS. */
  readonly tls?: { readonly ca: string; readonly key: string; readonly cert: string } | undefined;
  readonly logDir: string;
  /** Removed if we are killed. */
  readonly dir: string;
}

/** A process of a fleet, which starts again on the same ports. */
export class FleetProcess {
  readonly name: string;
  readonly service: FleetService;
  readonly url: string;
  readonly grpc: string | undefined;
  readonly #options: FleetProcessOptions;
  readonly #target: BalancerTarget;
  readonly #secureContext: SecureContext | undefined;
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
    this.#secureContext = options.tls && createSecureContext(options.tls);
    this.#target = { port: options.behind?.port ?? 0, isReady: () => this.isReady() };
  }

  get pid(): number {
    return this.#running.pid;
  }

  /** Resolves once the current process has ended. */
  get exited(): Promise<ProcessExit> {
    return this.#running.exited;
  }

  get lines(): readonly string[] {
    return this.#running.recentLines();
  }

  /** Connections that its balancer has given it since it was started. */
  get accepted(): number {
    return this.#options.behind?.balancer.accepted(this.#target) ?? 0;
  }

  async isReady(): Promise<boolean> {
    return (await this.probe('/readyz')) === 200;
  }

  /** Status of a probe; undefined without a response within a second. */
  probe(path: '/healthz' | '/readyz'): Promise<number | undefined> {
    const { url, tls } = this.#options;
    const request = tls ? https.request : http.request;
    return new Promise((resolve) => {
      const options = { agent: false, timeout: PROBE_TIMEOUT_MS, ...(tls && { secureContext: this.#secureContext }) };
      const req = request(url + path, options, (res) => {
        res.resume();
        resolve(res.statusCode);
      });
      req
        .on('timeout', () => req.destroy())
        .on('error', () => resolve(undefined))
        .on('close', () => resolve(undefined));
      req.end();
    });
  }

  /** Starts the process without waiting for it. It gets connections once it is ready. */
  async launch(env: NodeJS.ProcessEnv = {}): Promise<void> {
    this.#env = { ...this.#env, ...env };
    const { name, logDir, dir, behind } = this.#options;
    this.#log ??= await open(`${logDir}/${name}.log`, 'a');
    const log = this.#log;
    const isWorker = this.service === 'avatar-worker';
    this.#process = await runServer({
      command: process.execPath,
      args: [`${ROOT}services/${isWorker ? 'files' : this.service}/src/main.ts`, ...(isWorker ? ['avatar-worker'] : [])],
      cwd: ROOT,
      env: this.#env,
      stopSteps: [
        ['SIGTERM', STOP_TIMEOUT_MS],
        ['SIGKILL', 5_000],
      ],
      onLine: (line) => void log.write(`${line}\n`).catch(() => undefined),
      removeDirWhenOrphaned: dir,
    });
    behind?.balancer.add(this.#target);
  }

  /** Starts the process, with these settings changed, and waits until it is ready. */
  async start(env: NodeJS.ProcessEnv = {}): Promise<void> {
    await this.launch(env);
    await this.ready();
  }

  /** Waits until it is ready and its balancer knows; fails with its last lines. */
  async ready(): Promise<void> {
    const started = this.#running;
    let ended = false;
    void started.exited.then(() => {
      ended = true;
    });
    const { behind } = this.#options;
    // A probe costs a handshake.
    const serves = async () => (behind?.balancer.serves(this.#target) ?? true) && this.isReady();
    const bounds = { timeoutMs: START_TIMEOUT_MS, intervalMs: 25 };
    const isReady = await eventually(async () => ended || (await serves()), bounds).catch(() => false);
    if (ended || !isReady) throw new Error(`${this.name} is not ready:\n${started.recentLines().join('\n')}`);
  }

  /** Removes it from its balancer, as a rolling restart does, and sends SIGTERM. */
  async stop(): Promise<ProcessExit> {
    this.#leave();
    await this.#running.stop();
    return this.#running.exited;
  }

  /** Kills it; its balancer has to notice. */
  async kill(): Promise<void> {
    process.kill(this.pid, 'SIGKILL');
    await this.exited;
  }

  freeze(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  async restart(env: NodeJS.ProcessEnv = {}): Promise<void> {
    await this.stop();
    await this.start(env);
  }

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
    this.#options.behind?.balancer.remove(this.#target);
  }
}
