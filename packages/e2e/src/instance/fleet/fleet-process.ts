import { type FileHandle, open } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { createSecureContext } from 'node:tls';
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
export type FleetProcess = ReturnType<typeof createFleetProcess>;

export function createFleetProcess(options: FleetProcessOptions) {
  const { name, service, url, grpc, behind, tls, logDir, dir } = options;
  const secureContext = tls && createSecureContext(tls);
  const target: BalancerTarget = { port: behind?.port ?? 0, isReady };
  let { env } = options;
  let current: ServerProcess | undefined;
  let log: FileHandle | undefined;

  function running(): ServerProcess {
    if (!current) throw new Error(`${name} has not been started`);
    return current;
  }

  /** Status of a probe; undefined without a response within a second. */
  function probe(path: '/healthz' | '/readyz'): Promise<number | undefined> {
    const request = tls ? https.request : http.request;
    return new Promise((resolve) => {
      const req = request(url + path, { agent: false, timeout: PROBE_TIMEOUT_MS, ...(tls && { secureContext }) }, (res) => {
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

  async function isReady(): Promise<boolean> {
    return (await probe('/readyz')) === 200;
  }

  /** Starts the process without waiting for it. It gets connections once it is ready. */
  async function launch(changes: NodeJS.ProcessEnv = {}): Promise<void> {
    env = { ...env, ...changes };
    log ??= await open(`${logDir}/${name}.log`, 'a');
    const file = log;
    const isWorker = service === 'avatar-worker';
    current = await runServer({
      command: process.execPath,
      args: [`${ROOT}services/${isWorker ? 'files' : service}/src/main.ts`, ...(isWorker ? ['avatar-worker'] : [])],
      cwd: ROOT,
      env,
      stopSteps: [
        ['SIGTERM', STOP_TIMEOUT_MS],
        ['SIGKILL', 5_000],
      ],
      onLine: (line) => void file.write(`${line}\n`).catch(() => undefined),
      removeDirWhenOrphaned: dir,
    });
    behind?.balancer.add(target);
  }

  /** Waits until it is ready and its balancer knows; fails with its last lines. */
  async function ready(): Promise<void> {
    const started = running();
    let ended = false;
    void started.exited.then(() => {
      ended = true;
    });
    // A probe costs a handshake.
    const serves = async () => (behind?.balancer.serves(target) ?? true) && isReady();
    const bounds = { timeoutMs: START_TIMEOUT_MS, intervalMs: 25 };
    const isServing = await eventually(async () => ended || (await serves()), bounds).catch(() => false);
    if (ended || !isServing) throw new Error(`${name} is not ready:\n${started.recentLines().join('\n')}`);
  }

  /** Starts the process, with these settings changed, and waits until it is ready. */
  async function start(changes: NodeJS.ProcessEnv = {}): Promise<void> {
    await launch(changes);
    await ready();
  }

  /** Removes it from its balancer, as a rolling restart does, and sends SIGTERM. */
  async function stop(): Promise<ProcessExit> {
    behind?.balancer.remove(target);
    await running().stop();
    return running().exited;
  }

  return {
    ...{ name, service, url, grpc, probe, isReady, launch, ready, start, stop },
    get pid() {
      return running().pid;
    },
    /** Resolves once the current process has ended. */
    get exited() {
      return running().exited;
    },
    get lines() {
      return running().recentLines();
    },
    /** Connections that its balancer has given it since it was started. */
    get accepted() {
      return behind?.balancer.accepted(target) ?? 0;
    },
    /** Kills it; its balancer has to notice. */
    async kill() {
      process.kill(running().pid, 'SIGKILL');
      await running().exited;
    },
    freeze: () => void process.kill(running().pid, 'SIGSTOP'),
    thaw: () => void process.kill(running().pid, 'SIGCONT'),
    async restart(changes: NodeJS.ProcessEnv = {}) {
      await stop();
      await start(changes);
    },
    async remove() {
      behind?.balancer.remove(target);
      await current?.stop();
      await log?.close();
    },
  };
}
