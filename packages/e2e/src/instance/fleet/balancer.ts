import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface BalancerTarget {
  readonly port: number;
  /** Probed repeatedly; only ready processes get new connections. */
  isReady(): Promise<boolean>;
}

export interface BalancerOptions {
  /** Handling of connections while no process is ready; rejected unless set. */
  readonly whenNoneIsReady?: 'refuse' | 'any';
  /** Failed probes in a row until a process gets no connections; 15 unless set. */
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
export type Balancer = Awaited<ReturnType<typeof openBalancer>>;

/** Listens on a free port of 127.0.0.1. */
export async function openBalancer({ whenNoneIsReady = 'refuse', probeFailuresMax = 15 }: BalancerOptions = {}) {
  const backends = new Map<BalancerTarget, Backend>();
  const sockets = new Set<Socket>();
  let turn = 0;

  const isServing = ({ failures }: Backend) => failures < probeFailuresMax;

  function inTurn(): Backend[] {
    const all = [...backends.values()];
    const serving = all.filter(isServing);
    const ready = serving.length === 0 && whenNoneIsReady === 'any' ? all : serving;
    turn += 1;
    const first = turn % Math.max(1, ready.length);
    return [...ready.slice(first), ...ready.slice(0, first)];
  }

  function track(socket: Socket): void {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  }

  function connectTo(client: Socket, [backend, ...others]: Backend[]): void {
    if (!backend) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ port: backend.target.port, host: '127.0.0.1', allowHalfOpen: true });
    track(upstream);
    const onRefused = () => connectTo(client, others);
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

  const server = createServer({ allowHalfOpen: true }, (client) => {
    track(client);
    connectTo(client, inTurn());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });

  /** Gives a process no more connections; open ones stay. */
  function remove(target: BalancerTarget): void {
    backends.get(target)?.watching.abort();
    backends.delete(target);
  }
  return {
    port: (server.address() as AddressInfo).port,
    /** Connections that a process has been given so far. */
    accepted: (target: BalancerTarget) => backends.get(target)?.accepted ?? 0,
    serves(target: BalancerTarget) {
      const backend = backends.get(target);
      return backend !== undefined && isServing(backend);
    },
    add(target: BalancerTarget) {
      if (backends.has(target)) return;
      const backend = { target, watching: new AbortController(), failures: probeFailuresMax, accepted: 0 };
      backends.set(target, backend);
      void watch(backend);
    },
    remove,
    async close() {
      for (const target of [...backends.keys()]) remove(target);
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function watch(backend: Backend): Promise<void> {
  const { signal } = backend.watching;
  while (!signal.aborted) {
    backend.failures = (await backend.target.isReady()) ? 0 : backend.failures + 1;
    await delay(PROBE_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}
