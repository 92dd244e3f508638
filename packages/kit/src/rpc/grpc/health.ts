import { setTimeout as delay } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus as Status } from '@latchkey/proto/health/v1/health_pb';
import type { ReadinessCheck } from '../../http/probes.ts';
import { type RpcRoute, rpcRoute } from '../route.ts';

const WATCH_INTERVAL_MS = 1_000;

/** `grpc.health.v1.Health`. The server (empty name) and all its services have one status. */
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
      let last: Status | undefined;
      while (!signal.aborted) {
        const status = names.includes(service) ? await currentStatus() : Status.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
        await delay(WATCH_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
      }
    },
  });
}
