import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface BalancerTarget {
  readonly port: number;
  /** Probed repeatedly; only ready processes get new connections. */
  isReady(): Promise<boolean>;
}

export interface BalancerOptions {
  /** Handling of connections while no process is ready; rejected unless set. */
  readonly whenNoneIsReady?: 'refuse' | 'any';
  /** Failed probes in a row until a process gets no connections; 15, as in deploy/kubernetes. */
  readonly probeFailuresMax?: number;
}

const PROBE_INTERVAL_MS = 200;

interface Backend {
  readonly target: BalancerTarget;
  readonly watching: AbortController;
  failures: number;
  accepted: number;
}

/** Spreads TCP connections over ready processes in turn, as a Kubernetes Service does. */
export class Balancer {
  readonly #server: Server;
  readonly #backends = new Map<BalancerTarget, Backend>();
  readonly #sockets = new Set<Socket>();
  readonly #options: Required<BalancerOptions>;
  #turn = 0;

  private constructor(options: BalancerOptions = {}) {
    this.#options = { whenNoneIsReady: 'refuse', probeFailuresMax: 15, ...options };
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      this.#track(client);
      this.#connect(client, this.#inTurn());
    });
  }

  /** Listens on a free port of 127.0.0.1. */
  static async open(options?: BalancerOptions): Promise<Balancer> {
    const balancer = new Balancer(options);
    await new Promise<void>((resolve, reject) => {
      balancer.#server.once('error', reject).listen(0, '127.0.0.1', resolve);
    });
    return balancer;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that a process has been given so far. */
  accepted(target: BalancerTarget): number {
    return this.#backends.get(target)?.accepted ?? 0;
  }

  serves(target: BalancerTarget): boolean {
    const backend = this.#backends.get(target);
    return backend !== undefined && backend.failures < this.#options.probeFailuresMax;
  }

  add(target: BalancerTarget): void {
    if (this.#backends.has(target)) return;
    const backend = { target, watching: new AbortController(), failures: this.#options.probeFailuresMax, accepted: 0 };
    this.#backends.set(target, backend);
    void watch(backend);
  }

  /** Gives a process no more connections; open ones stay. */
  remove(target: BalancerTarget): void {
    this.#backends.get(target)?.watching.abort();
    this.#backends.delete(target);
  }

  async close(): Promise<void> {
    for (const target of [...this.#backends.keys()]) this.remove(target);
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #inTurn(): Backend[] {
    const all = [...this.#backends.values()];
    const serving = all.filter(({ target }) => this.serves(target));
    const ready = serving.length === 0 && this.#options.whenNoneIsReady === 'any' ? all : serving;
    this.#turn += 1;
    const first = this.#turn % Math.max(1, ready.length);
    return [...ready.slice(first), ...ready.slice(0, first)];
  }

  #connect(client: Socket, [backend, ...others]: Backend[]): void {
    if (!backend) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ port: backend.target.port, host: '127.0.0.1', allowHalfOpen: true });
    this.#track(upstream);
    const onRefused = () => this.#connect(client, others);
    upstream.once('error', onRefused);
    upstream.once('connect', () => {
      upstream.off('error', onRefused);
      backend.accepted += 1;
      client.pipe(upstream).pipe(client);
      client.on('error', () => upstream.resetAndDestroy()).on('close', () => upstream.destroy());
      upstream.on('error', () => client.resetAndDestroy()).on('close', () => client.destroySoon());
      if (client.destroyed) upstream.destroy();
    });
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

async function watch(backend: Backend): Promise<void> {
  const { signal } = backend.watching;
  while (!signal.aborted) {
    backend.failures = (await backend.target.isReady()) ? 0 : backend.failures + 1;
    await delay(PROBE_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}
