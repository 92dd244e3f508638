import { Code, ConnectError } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus } from '@latchkey/proto/health/v1/health_pb';
import { Shares } from '../http/shares.ts';
import { watcherNetwork } from './open-calls.ts';
import { type RpcRoute, rpcRoute } from './route.ts';

/** Rejects while the service can't do its work. */
export type ReadinessCheck = () => Promise<void>;

/** How often a watcher's status is looked at again, in milliseconds. */
const WATCH_INTERVAL_MS = 1_000;

/** Watchers of one process at once: anyone may watch. */
const WATCHERS = { total: 1_000, perNetwork: 50 };

/**
 * `grpc.health.v1.Health` for a server: the empty name stands for the whole server, and each of its services has the
 * same status.
 */
export function healthRoute(checkReady: ReadinessCheck, routes: readonly RpcRoute[]): RpcRoute {
  const names = ['', ...routes.map((route) => route.service.typeName)];
  const status = () =>
    checkReady().then(
      () => HealthCheckResponse_ServingStatus.SERVING,
      () => HealthCheckResponse_ServingStatus.NOT_SERVING,
    );
  const watchers = new Shares(WATCHERS);
  async function* changes(signal: AbortSignal) {
    let last: HealthCheckResponse_ServingStatus | undefined;
    while (!signal.aborted) {
      const now = await status();
      if (now !== last) yield { status: now };
      last = now;
      await tick(signal);
    }
  }
  return rpcRoute(Health, {
    async check({ service }) {
      if (!names.includes(service)) throw new ConnectError('unknown service', Code.NotFound);
      return { status: await status() };
    },
    async list() {
      const now = await status();
      return { statuses: Object.fromEntries(names.map((name) => [name, { status: now }])) };
    },
    async *watch({ service }, { signal, values }) {
      if (!names.includes(service)) {
        yield { status: HealthCheckResponse_ServingStatus.SERVICE_UNKNOWN };
        return;
      }
      const leave = watchers.take(watcherNetwork(values));
      if (!leave) throw new ConnectError('there are too many watchers', Code.ResourceExhausted);
      try {
        yield* changes(signal);
      } finally {
        leave();
      }
    },
  });
}

/** Waits for the next look, or for the end of the call. */
function tick(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, WATCH_INTERVAL_MS);
    signal.addEventListener('abort', end, { once: true });
  });
}
