import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import type { Transport } from '@connectrpc/connect';
import { trustProxies } from '@latchkey/kit/http/client-ip';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import type { RpcService } from '@latchkey/kit/process/run-service';
import { createSweeper } from '@latchkey/kit/process/sweeper';
import { checkServing } from '@latchkey/kit/rpc/client/peer-readiness';
import type { RealtimeConfig } from './config.ts';
import { createAppsClient } from './event/apps-client.ts';
import { createFanOut } from './fan-out/fan-out.ts';
import { Hubs } from './hub/hubs.ts';
import { watchSockets } from './live-metrics.ts';
import { createEndpoint, createWebSocketServer } from './server.ts';
import { drain, SPREAD_MS_MAX } from './socket/drain.ts';
import { ConnectionQuota, RejectionLimit } from './upgrade/connection-quota.ts';
import { Upgrades } from './upgrade/upgrade.ts';

/** The service, composed and not yet started; it serves health and reflection only. */
export interface RealtimeService extends RpcService {
  readonly name: 'realtime';
  /** Port of the WebSocket endpoint; known once started. */
  readonly port: number;
  /** Begins to listen, also while Redis or apps is away. */
  start(): Promise<void>;
  /** Rejects new upgrades, and closes the sockets with 1001, spread over time. */
  stop(): Promise<void>;
  /** Rejects while the apps service does not respond. Redis may be away. */
  checkReady(): Promise<void>;
}

/** Intervals and limits that no operator needs to change; tests shorten them. */
const DEFAULTS = {
  /** Interval of reconciliation: the longest delay of an event while Redis is away. */
  reconcileMs: 1_000,
  /** Sockets of one application on a node. */
  socketsPerApplication: 10_000,
  /** Rejected upgrades of one address; beyond them, all are rejected for the rest of the minute. */
  rejectionsPerMinute: 600,
};

export type RealtimeOverrides = Partial<typeof DEFAULTS>;

export interface RealtimeDeps {
  readonly appsTransport: Transport;
  readonly logger?: Logger;
  readonly overrides?: RealtimeOverrides;
}

const STOP_MS_MAX = SPREAD_MS_MAX + 20_000;
/** Connections beside sockets: requests that are rejected, or still being sent. */
const OTHER_CONNECTIONS_MAX = 1_000;
/** Connections that may wait to be accepted when thousands reconnect. */
const BACKLOG = 4_096;

/** Composes the realtime service. */
export function createRealtimeService(config: RealtimeConfig, deps: RealtimeDeps): RealtimeService {
  const { appsTransport, logger = createLogger('realtime', config.LOG_LEVEL) } = deps;
  const { reconcileMs, socketsPerApplication, rejectionsPerMinute } = { ...DEFAULTS, ...deps.overrides };
  const { SOCKETS_MAX: total, SOCKETS_PER_IP: perNetwork, REALTIME_HOST: host, REALTIME_PORT: configuredPort } = config;
  const apps = createAppsClient(appsTransport);
  const fanOut = createFanOut({
    redisUrl: config.REDIS_URL,
    logger,
    onPublished: (applicationId, text) => hubs.receive(applicationId, text),
    // Retried when the connection is ready again; until then reconciliation finds events.
    onReady: () => void hubs.resubscribe().catch(() => undefined),
  });
  const hubs = new Hubs({ apps, channels: fanOut, logger });
  const reconciling = createSweeper({ intervalMs: reconcileMs, logger, sweeps: [() => hubs.reconcileAll()] });
  const trust = trustProxies(config.TRUSTED_PROXIES);
  let isStopping = false;
  const upgrades = new Upgrades({
    webSockets: createWebSocketServer(),
    apps,
    hubs,
    quota: new ConnectionQuota({ total, perNetwork, perApplication: socketsPerApplication }),
    rejections: new RejectionLimit(rejectionsPerMinute),
    trust,
    isStopping: () => isStopping,
    logger,
  });
  const endpoint = createEndpoint({
    onUpgrade: (req, socket, head) => void upgrades.handle(req, socket as Socket, head),
    limits: { total: total + OTHER_CONNECTIONS_MAX, perNetwork: perNetwork + OTHER_CONNECTIONS_MAX / 2, trust },
    logger,
  });
  const unwatch = watchSockets(hubs, total);
  return {
    name: 'realtime',
    logger,
    routes: [],
    stopTimeoutMs: STOP_MS_MAX,
    get port() {
      return (endpoint.address() as AddressInfo | null)?.port ?? configuredPort;
    },
    async start() {
      await fanOut.start();
      endpoint.listen({ host, port: configuredPort, backlog: BACKLOG });
      await once(endpoint, 'listening');
      reconciling.start();
    },
    async stop() {
      isStopping = true;
      endpoint.close();
      await stopAll(
        () => drain(() => hubs.sockets()),
        () => endpoint.closeAllConnections(),
        () => reconciling.stop(),
        () => fanOut.stop(),
        unwatch,
      );
    },
    checkReady: () => checkServing(appsTransport, 'apps'),
  };
}
