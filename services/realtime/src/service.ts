import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Transport } from '@connectrpc/connect';
import { trustProxies } from '@latchkey/kit/http/client-ip';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createChangePublisher } from '@latchkey/kit/redis/account-changes';
import { connectInBackground, createFailFastRedis, createSubscriber } from '@latchkey/kit/redis/redis';
import { redisUrls } from '@latchkey/kit/redis/redis-url';
import { checkServing } from '@latchkey/kit/rpc/client/peer-readiness';
import { createSweeper } from '@latchkey/kit/sweeper/sweeper';
import { COUNTING_INTERVAL_MS, createClientCount } from './client-count/client-count.ts';
import type { RealtimeConfig } from './config.ts';
import { createAppsClient } from './event/apps-client.ts';
import { createHubs } from './hub/hubs.ts';
import { watchSockets } from './live-metrics.ts';
import { createEndpoint, createWebSocketServer } from './server.ts';
import { drain, SPREAD_MS_MAX } from './socket/drain.ts';
import { createConnectionQuota, createRejectionLimit } from './upgrade/connection-quota.ts';
import { createUpgradeHandler, type UpgradeOptions } from './upgrade/upgrade.ts';

export type RealtimeService = ReturnType<typeof createRealtimeService>;

/** Intervals and limits that no operator needs to change; tests shorten them. */
const DEFAULTS = {
  /** Interval of reconciliation: the longest delay of an event while Redis is away. */
  reconcileMs: 1_000,
  /** Rejected upgrades of one address; beyond them, all are rejected for the rest of the minute. */
  rejectionsPerMinute: 600,
};

export type RealtimeOverrides = Partial<typeof DEFAULTS>;

const STOP_MS_MAX = SPREAD_MS_MAX + 20_000;
/** Connections besides sockets: requests that are rejected, or still being sent. */
const OTHER_CONNECTIONS_MAX = 1_000;
/** Connections that may wait to be accepted when thousands reconnect. */
const BACKLOG = 4_096;

/** Listens also while Redis or apps is away. The service serves health and reflection only. */
export function createRealtimeService(
  config: RealtimeConfig,
  deps: { readonly appsTransport: Transport; readonly logger?: Logger; readonly overrides?: RealtimeOverrides },
) {
  const { appsTransport, logger = createLogger('realtime', config.LOG_LEVEL) } = deps;
  const limits = { ...DEFAULTS, ...deps.overrides };
  const apps = createAppsClient(appsTransport);
  const subscriber = createSubscriber(redisUrls(config).events, logger, {
    name: 'latchkey-realtime-subscriber',
    topic: 'realtime',
    onMessage: (applicationId, text) => hubs.receive(applicationId, text),
    // Retried when the connection is ready again; until then reconciliation finds events.
    onReady: () => void hubs.resubscribe().catch(() => undefined),
  });
  const hubs = createHubs({ apps, channels: subscriber, logger });
  const reconciling = createSweeper({
    intervalMs: limits.reconcileMs,
    logger,
    sweeps: { live_events: () => hubs.reconcileAll() },
  });
  const redis = createFailFastRedis(redisUrls(config).limits, logger, { name: 'latchkey-realtime-clients' });
  const changes = createChangePublisher(redisUrls(config).events, logger, 'latchkey-realtime-changes');
  const counting = createSweeper({
    intervalMs: COUNTING_INTERVAL_MS,
    logger,
    sweeps: { live_clients: createClientCount({ hubs, apps, redis, announce: changes.publish, logger }) },
  });
  let isStopping = false;
  const endpoint = createSocketEndpoint(config, limits, { apps, hubs, logger, isStopping: () => isStopping });
  const unwatch = watchSockets(hubs, config.SOCKETS_MAX);
  return {
    name: 'realtime' as const,
    logger,
    routes: [],
    stopTimeoutMs: STOP_MS_MAX,
    get port(): number {
      return (endpoint.address() as AddressInfo | null)?.port ?? config.REALTIME_PORT;
    },
    async start(): Promise<void> {
      changes.start();
      await Promise.all([subscriber.start(), connectInBackground(redis)]);
      endpoint.listen({ host: config.REALTIME_HOST, port: config.REALTIME_PORT, backlog: BACKLOG });
      await once(endpoint, 'listening');
      reconciling.start();
      counting.start();
    },
    /** Rejects new upgrades, and closes the sockets with 1001, spread over time. */
    async stop(): Promise<void> {
      isStopping = true;
      endpoint.close();
      await stopAll(
        () => drain(() => hubs.sockets()),
        () => endpoint.closeAllConnections(),
        () => reconciling.stop(),
        () => counting.stop(),
        () => redis.disconnect(),
        () => changes.stop(),
        () => subscriber.stop(),
        unwatch,
      );
    },
    checkReady: (): Promise<void> => checkServing(appsTransport, 'apps'),
  };
}

function createSocketEndpoint(
  config: RealtimeConfig,
  { rejectionsPerMinute }: typeof DEFAULTS,
  shared: Pick<UpgradeOptions, 'apps' | 'hubs' | 'logger' | 'isStopping'>,
): Server {
  const { SOCKETS_MAX: total, SOCKETS_PER_IP: perNetwork, SOCKETS_PER_APPLICATION: perApplication } = config;
  const trust = trustProxies(config.TRUSTED_PROXIES);
  const handleUpgrade = createUpgradeHandler({
    ...shared,
    webSockets: createWebSocketServer(),
    quota: createConnectionQuota({ total, perNetwork, perApplication }),
    rejections: createRejectionLimit(rejectionsPerMinute),
    trust,
  });
  const limits = { total: total + OTHER_CONNECTIONS_MAX, perNetwork: perNetwork + OTHER_CONNECTIONS_MAX / 2, trust };
  return createEndpoint((...upgrade) => void handleUpgrade(...upgrade), limits, shared.logger);
}
