import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** One of the processes that connections are spread over. */
export interface BalancerTarget {
  readonly port: number;
  /** Asked again and again; new connections go only to those that answer true. */
  isReady(): Promise<boolean>;
}

/** How a balancer behaves. */
export interface BalancerOptions {
  /**
   * What becomes of connections while no process is ready: they are refused, as by the Service of a Kubernetes cluster, or given to any, as by most
   * load balancers before clients. Refused unless set.
   */
  readonly whenNoneIsReady?: 'refuse' | 'any';
  /**
   * Failed probes in a row after which a process gets no new connections; 15 unless set. Each takes
   * a second at most, so a process short of CPU time has as long as in deploy/kubernetes.
   */
  readonly probeFailuresMax?: number;
}

/** How long after one probe the next is made, in milliseconds. */
const PROBE_INTERVAL_MS = 200;

/** A target and what is known of it. */
interface Backend {
  readonly target: BalancerTarget;
  readonly watching: AbortController;
  failures: number;
  accepted: number;
}

/**
 * Spreads TCP connections over processes in turn, as the Service of a Kubernetes cluster does: to those that are ready, and of a connection that is
 * open it is never asked again. A process that refuses a connection is passed over.
 */
export class Balancer {
  readonly #server: Server;
  readonly #backends = new Map<BalancerTarget, Backend>();
  readonly #sockets = new Set<Socket>();
  readonly #whenNoneIsReady: NonNullable<BalancerOptions['whenNoneIsReady']>;
  readonly #probeFailuresMax: number;
  #turn = 0;

  private constructor({ whenNoneIsReady = 'refuse', probeFailuresMax = 15 }: BalancerOptions = {}) {
    this.#whenNoneIsReady = whenNoneIsReady;
    this.#probeFailuresMax = probeFailuresMax;
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      this.#keep(client);
      this.#connect(client, this.#inTurn());
    });
  }

  /** Listens on a port of 127.0.0.1 that the system chooses. */
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

  /** Whether new connections go to a process. */
  serves(target: BalancerTarget): boolean {
    const backend = this.#backends.get(target);
    return backend !== undefined && backend.failures < this.#probeFailuresMax;
  }

  /** Gives a process its share of the connections to come, from when it is ready. */
  add(target: BalancerTarget): void {
    if (this.#backends.has(target)) return;
    const backend = { target, watching: new AbortController(), failures: this.#probeFailuresMax, accepted: 0 };
    this.#backends.set(target, backend);
    void watch(backend);
  }

  /** Gives a process no more connections; those that it has stay. */
  remove(target: BalancerTarget): void {
    this.#backends.get(target)?.watching.abort();
    this.#backends.delete(target);
  }

  async close(): Promise<void> {
    for (const target of [...this.#backends.keys()]) this.remove(target);
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The processes that are ready, the one whose turn it is first. */
  #inTurn(): Backend[] {
    const all = [...this.#backends.values()];
    const serving = all.filter(({ target }) => this.serves(target));
    const ready = serving.length === 0 && this.#whenNoneIsReady === 'any' ? all : serving;
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
    this.#keep(upstream);
    const onRefused = () => this.#connect(client, others);
    upstream.once('error', onRefused);
    upstream.once('connect', () => {
      upstream.off('error', onRefused);
      backend.accepted += 1;
      join(client, upstream);
    });
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

/** Passes everything on both ways, and ends what has ended. */
function join(client: Socket, upstream: Socket): void {
  client.pipe(upstream).pipe(client);
  client.on('error', () => upstream.resetAndDestroy()).on('close', () => upstream.destroy());
  upstream.on('error', () => client.resetAndDestroy()).on('close', () => client.destroySoon());
  if (client.destroyed) upstream.destroy();
}

/** Probes a process until it is taken out. */
async function watch(backend: Backend): Promise<void> {
  const { signal } = backend.watching;
  while (!signal.aborted) {
    backend.failures = (await backend.target.isReady()) ? 0 : backend.failures + 1;
    await delay(PROBE_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}
