import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import type { Transport } from '@connectrpc/connect';
import { trustProxies } from '@latchkey/kit/http/client-ip';
import { stopAll } from '@latchkey/kit/lifecycle';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import { connectInBackground, createFailFastRedis, createSubscriber } from '@latchkey/kit/redis';
import { checkServing } from '@latchkey/kit/rpc/client/peer-readiness';
import type { RpcRoute } from '@latchkey/kit/rpc/route';
import type { RealtimeConfig } from './config.ts';
import { createAppsClient } from './event/apps-client.ts';
import { createEventConsumer } from './fan-out/application-event.consumer.ts';
import { channelOf } from './fan-out/channel.ts';
import { createChannels, onPublished } from './fan-out/channels.ts';
import { Hubs } from './hub/hubs.ts';
import { createLookout } from './hub/lookout.ts';
import { openSockets, socketApplications, socketsMax } from './live-metrics.ts';
import { createEndpoint, createWebSocketServer } from './server.ts';
import { drain } from './socket/drain.ts';
import { Heartbeat } from './socket/heartbeat.ts';
import { Places } from './upgrade/places.ts';
import { Refusals } from './upgrade/refusals.ts';
import { Upgrades } from './upgrade/upgrade.ts';

/** The service, composed and not yet started. */
export interface RealtimeService {
  readonly name: 'realtime';
  readonly logger: Logger;
  /** It answers health and reflection only. */
  readonly routes: readonly RpcRoute[];
  /** Port that sockets are opened on; known once started. */
  readonly port: number;
  /** Longest time that an ordered stop may take, in milliseconds. */
  readonly stopTimeoutMs: number;
  /** Begins to listen, also while Redis or apps is away. */
  start(): Promise<void>;
  /** Refuses what comes, closes the sockets with 1001 spread over time, and resolves. */
  stop(): Promise<void>;
  /** Rejects while the apps service does not answer. Redis may be away. */
  checkReady(): Promise<void>;
}

/** What the service is composed with. All but the transport has a default. */
export interface RealtimeDeps {
  /** Reaches the apps service. */
  readonly appsTransport: Transport;
  readonly logger?: Logger;
}

const PUBLISH_TIMEOUT_MS = 1_000;
const STOP_SLACK_MS = 20_000;
/** Connections beside sockets: requests that are refused, and those that are still being sent. */
const OTHER_CONNECTIONS_MAX = 1_000;
/** Connections that may wait to be taken in when thousands come at once; the system may allow fewer. One that finds no room tries again in a second or more. */
const BACKLOG = 4_096;

/** Composes the realtime service. */
export function createRealtimeService(config: RealtimeConfig, deps: RealtimeDeps): RealtimeService {
  const logger = deps.logger ?? createLogger('realtime', config.LOG_LEVEL);
  const apps = createAppsClient(deps.appsTransport);
  const publisher = createFailFastRedis(config.REDIS_URL, logger, {
    name: 'latchkey-realtime-publisher',
    commandTimeoutMs: PUBLISH_TIMEOUT_MS,
  });
  const subscriber = createSubscriber(config.REDIS_URL, logger, {
    name: 'latchkey-realtime-subscriber',
    // What fails is tried again when the connection is ready again, and looked for meanwhile.
    onReady: () => void hubs.resubscribe().catch(() => undefined),
  });
  const hubs = new Hubs({ apps, channels: createChannels(subscriber), logger });
  onPublished(subscriber, (applicationId, text) => hubs.receive(applicationId, text));
  const lookout = createLookout(hubs, config.EVENT_LOOK_SECONDS * 1_000);
  const consumer = createEventConsumer({
    redisUrl: config.REDIS_URL,
    publish: async (applicationId, text) => void (await publisher.publish(channelOf(publisher, applicationId), text)),
    logger,
  });
  const heartbeat = new Heartbeat(config.HEARTBEAT_SECONDS * 1_000);
  const trust = trustProxies(config.TRUSTED_PROXIES);
  let isStopping = false;
  const upgrades = new Upgrades({
    webSockets: createWebSocketServer(),
    apps,
    hubs,
    heartbeat,
    places: new Places({
      total: config.SOCKETS_MAX,
      perNetwork: config.SOCKETS_PER_IP,
      perApplication: config.SOCKETS_PER_APPLICATION,
    }),
    refusals: new Refusals(config.REFUSED_UPGRADES_PER_MINUTE, () => performance.now()),
    trust,
    isStopping: () => isStopping,
    logger,
  });
  const endpoint = createEndpoint({
    onUpgrade: (req, socket, head) => void upgrades.take(req, socket as Socket, head),
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
  const spreadMs = config.SOCKET_DRAIN_SECONDS * 1_000;
  return {
    name: 'realtime',
    logger,
    routes: [],
    stopTimeoutMs: spreadMs + STOP_SLACK_MS,
    get port() {
      return (endpoint.address() as AddressInfo | null)?.port ?? config.REALTIME_PORT;
    },
    async start() {
      await Promise.all([connectInBackground(publisher), connectInBackground(subscriber)]);
      endpoint.listen({ host: config.REALTIME_HOST, port: config.REALTIME_PORT, backlog: BACKLOG });
      await once(endpoint, 'listening');
      consumer.start();
      lookout.start();
      heartbeat.start();
    },
    async stop() {
      isStopping = true;
      endpoint.close();
      await stopAll(
        () => drain(() => hubs.sockets(), spreadMs),
        () => endpoint.closeAllConnections(),
        () => heartbeat.stop(),
        () => lookout.stop(),
        () => consumer.stop(),
        () => subscriber.disconnect(),
        () => publisher.disconnect(),
        () => unwatch.forEach((end) => void end()),
      );
    },
    checkReady: () => checkServing(deps.appsTransport, 'apps'),
  };
}
