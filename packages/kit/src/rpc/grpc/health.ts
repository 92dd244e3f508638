import { setTimeout as delay } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import type { ReadinessCheck } from '../../http/cached-readiness.ts';
import { type RpcRoute, rpcRoute } from '../route.ts';

/** How often a watched status is checked, in milliseconds. */
const WATCH_INTERVAL_MS = 1_000;

/**
 * `grpc.health.v1.Health` for a server: the empty name stands for the whole server, and each of its
 * services has the same status.
 */
export function healthRoute(checkReady: ReadinessCheck, routes: readonly RpcRoute[]): RpcRoute {
  const names = ['', ...routes.map((route) => route.service.typeName)];
  const currentStatus = () =>
    checkReady().then(
      () => Status.SERVING,
      () => Status.NOT_SERVING,
    );
  return rpcRoute(Health, {
    async check({ service }) {
      if (!names.includes(service)) throw new ConnectError('unknown service', Code.NotFound);
      return { status: await currentStatus() };
    },
    async list() {
      const status = await currentStatus();
      return { statuses: Object.fromEntries(names.map((name) => [name, { status }])) };
    },
    async *watch({ service }, { signal }) {
      const isKnown = names.includes(service);
      let last: Status | undefined;
      while (!signal.aborted) {
        const status = isKnown ? await currentStatus() : Status.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
        await delay(WATCH_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
      }
    },
  });
}
