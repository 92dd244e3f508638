import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import type { Transport } from '@connectrpc/connect';
import { trustProxies } from '@latchkey/kit/http/client-ip';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import type { RpcService } from '@latchkey/kit/process/run-service';
import { createSweeper } from '@latchkey/kit/process/sweeper';
import { connectInBackground, createFailFastRedis, createSubscriber } from '@latchkey/kit/redis/redis';
import { checkServing } from '@latchkey/kit/rpc/client/peer-readiness';
import { REALTIME_DEFAULTS, type RealtimeConfig } from './config.ts';
import { createAppsClient } from './event/apps-client.ts';
import { channelOf, createChannels, onPublished } from './fan-out/application-channel.ts';
import { createEventConsumer } from './fan-out/application-event.consumer.ts';
import { Hubs } from './hub/hubs.ts';
import { openSockets, socketApplications, socketsMax } from './live-metrics.ts';
import { createEndpoint, createWebSocketServer } from './server.ts';
import { drain } from './socket/drain.ts';
import { Heartbeat } from './socket/heartbeat.ts';
import { ConnectionQuota, RejectionLimit } from './upgrade/connection-quota.ts';
import { Upgrades } from './upgrade/upgrade.ts';

/** The service, composed and not yet started; it serves health and reflection only. */
export interface RealtimeService extends RpcService {
  readonly name: 'realtime';
  /** Port of the WebSocket endpoint; known once started. */
  readonly port: number;
  readonly stopTimeoutMs: number;
  /** Begins to listen, also while Redis or apps is away. */
  start(): Promise<void>;
  /** Rejects new upgrades, and closes the sockets with 1001, spread over time. */
  stop(): Promise<void>;
  /** Rejects while the apps service does not respond. Redis may be away. */
  checkReady(): Promise<void>;
}

export interface RealtimeDeps {
  readonly appsTransport: Transport;
  readonly logger?: Logger;
  readonly overrides?: Partial<typeof REALTIME_DEFAULTS>;
}

const PUBLISH_TIMEOUT_MS = 1_000;
const STOP_SLACK_MS = 20_000;
/** Connections beside sockets: requests that are rejected, or still being sent. */
const OTHER_CONNECTIONS_MAX = 1_000;
/** Connections that may wait to be accepted when thousands reconnect. */
const BACKLOG = 4_096;

/** Composes the realtime service. */
export function createRealtimeService(config: RealtimeConfig, deps: RealtimeDeps): RealtimeService {
  const logger = deps.logger ?? createLogger('realtime', config.LOG_LEVEL);
  const { reconcileMs, socketsPerApplication, heartbeatMs, rejectionsPerMinute, drainMs } = {
    ...REALTIME_DEFAULTS,
    ...deps.overrides,
  };
  const apps = createAppsClient(deps.appsTransport);
  const publisher = createFailFastRedis(config.REDIS_URL, logger, {
    name: 'latchkey-realtime-publisher',
    commandTimeoutMs: PUBLISH_TIMEOUT_MS,
  });
  const subscriber = createSubscriber(config.REDIS_URL, logger, {
    name: 'latchkey-realtime-subscriber',
    // Retried when the connection is ready again; until then reconciliation finds events.
    onReady: () => void hubs.resubscribe().catch(() => undefined),
  });
  const hubs = new Hubs({ apps, channels: createChannels(subscriber), logger });
  onPublished(subscriber, (applicationId, text) => hubs.receive(applicationId, text));
  const reconciling = createSweeper({ intervalMs: reconcileMs, logger, sweeps: [() => hubs.reconcileAll()] });
  const publish = async (applicationId: string, text: string) =>
    void (await publisher.publish(channelOf(publisher, applicationId), text));
  const consumer = createEventConsumer(config.REDIS_URL, publish, logger);
  const heartbeat = new Heartbeat(heartbeatMs);
  const trust = trustProxies(config.TRUSTED_PROXIES);
  let isStopping = false;
  const upgrades = new Upgrades({
    webSockets: createWebSocketServer(),
    apps,
    hubs,
    heartbeat,
    quota: new ConnectionQuota({
      total: config.SOCKETS_MAX,
      perNetwork: config.SOCKETS_PER_IP,
      perApplication: socketsPerApplication,
    }),
    rejections: new RejectionLimit(rejectionsPerMinute),
    trust,
    isStopping: () => isStopping,
    logger,
  });
  const endpoint = createEndpoint({
    onUpgrade: (req, socket, head) => void upgrades.handle(req, socket as Socket, head),
    limits: {
      total: config.SOCKETS_MAX + OTHER_CONNECTIONS_MAX,
      perNetwork: config.SOCKETS_PER_IP + OTHER_CONNECTIONS_MAX / 2,
      trust,
    },
    logger,
  });
  const unwatch = [
    openSockets.watch(() => [[hubs.socketCount]]),
    socketsMax.watch(() => [[config.SOCKETS_MAX]]),
    socketApplications.watch(() => [[hubs.applicationCount]]),
  ];
  return {
    name: 'realtime',
    logger,
    routes: [],
    stopTimeoutMs: drainMs + STOP_SLACK_MS,
    get port() {
      return (endpoint.address() as AddressInfo | null)?.port ?? config.REALTIME_PORT;
    },
    async start() {
      await Promise.all([connectInBackground(publisher), connectInBackground(subscriber)]);
      endpoint.listen({ host: config.REALTIME_HOST, port: config.REALTIME_PORT, backlog: BACKLOG });
      await once(endpoint, 'listening');
      consumer.start();
      reconciling.start();
      heartbeat.start();
    },
    async stop() {
      isStopping = true;
      endpoint.close();
      await stopAll(
        () => drain(() => hubs.sockets(), drainMs),
        () => endpoint.closeAllConnections(),
        () => heartbeat.stop(),
        () => reconciling.stop(),
        () => consumer.stop(),
        () => subscriber.disconnect(),
        () => publisher.disconnect(),
        () => unwatch.forEach((end) => void end()),
      );
    },
    checkReady: () => checkServing(deps.appsTransport, 'apps'),
  };
}
