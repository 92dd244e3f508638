import type { Transport } from '@connectrpc/connect';
import { warnOfMisspelt } from '../config/misspelt-settings.ts';
import type { ProcessConfig, SharedConfig } from '../config/process-settings.ts';
import { ConfigError, readTogether } from '../config/settings.ts';
import { waitForDatabase } from '../database/database-wait.ts';
import { cachedReadiness, type ReadinessCheck } from '../http/probes.ts';
import type { Logger } from '../log/logger.ts';
import { checkRedisAccess } from '../redis/redis.ts';
import { givenRedisUrls } from '../redis/redis-url.ts';
import { requireCredentialAccepted } from '../rpc/client/peer-readiness.ts';
import { createServiceTransport } from '../rpc/client/service-transport.ts';
import { DEADLINES_MS } from '../rpc/deadlines.ts';
import type { RpcRoute } from '../rpc/route.ts';
import type { HttpRoute } from '../rpc/server/http-route.ts';
import { type RpcServer, startRpcServer } from '../rpc/server/server.ts';
import { openTelemetry, readTelemetryConfig } from '../telemetry/telemetry.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import { openServiceTls } from '../tls/tls-settings.ts';
import { type Runnable, runProcess, stopAll } from './lifecycle.ts';

export interface Service extends Runnable {
  readonly logger: Logger;
  /** Migrates the schema before the start. A service without a database has none. */
  migrate?(): Promise<string[]>;
  readonly checkReady: ReadinessCheck;
}

export interface RpcService extends Service {
  readonly routes: readonly RpcRoute[];
  readonly httpRoutes?: readonly HttpRoute[];
  /** Longest time for an ordered stop, in milliseconds; 75 s unless set. */
  readonly stopTimeoutMs?: number;
}

/** Opens a transport to another service, which is closed after the service. */
type ConnectPeer = (peer: string, url: string) => Transport;

/** Longest time for an ordered stop of a service whose requests are all calls, in milliseconds. */
const STOP_MS_MAX = DEADLINES_MS.longest + 15_000;

/**
 * The whole of a service's `main.ts`: settings, composition, server, signals. Wrong settings end
 * the process with code 1 and every problem on standard error; a Redis or a database that rejects
 * it, with code 1 and the reason in the log. It is not ready while a peer rejects its credential.
 */
export function runService<C extends ProcessConfig>(
  name: string,
  readConfig: (env: NodeJS.ProcessEnv) => C,
  create: (config: C, connect: ConnectPeer) => RpcService,
): Promise<void> {
  return runWithoutRpc(name, readConfig, (config, tls) => {
    const peers: Record<string, ReturnType<typeof createServiceTransport>> = {};
    const service = create(config, (peer, url) => {
      peers[peer] = createServiceTransport(url, config.SERVICE_CREDENTIALS[0], { tls });
      return peers[peer];
    });
    const { logger, stopTimeoutMs = STOP_MS_MAX } = service;
    const checkReady = cachedReadiness(requireCredentialAccepted(service.checkReady, peers), logger);
    let server: RpcServer | undefined;
    return {
      logger,
      stopTimeoutMs,
      async checkReady() {
        if (!server) throw new Error('the service is starting');
        await checkReady();
      },
      async migrate() {
        return config.MIGRATE_ON_START === 'true' && service.migrate ? service.migrate() : [];
      },
      async start() {
        await service.start();
        server = await startRpcServer({
          routes: service.routes,
          ...(service.httpRoutes && { httpRoutes: service.httpRoutes }),
          logger,
          credentials: config.SERVICE_CREDENTIALS,
          checkReady,
          host: config.HOST,
          port: config.PORT,
          grpcPort: config.GRPC_PORT,
          tls,
          limits: { connectionsPerIp: config.CONNECTIONS_PER_IP },
        });
        logger.info({ port: server.port, grpcPort: server.grpcPort }, 'listening');
      },
      stop: () =>
        stopAll(
          () => server?.stop(),
          () => service.stop(),
          () => Promise.all(Object.values(peers).map((transport) => transport.close())),
        ),
    };
  });
}

/** {@link runService} for a service that has its own server. */
export async function runWithoutRpc<C extends SharedConfig>(
  name: string,
  readConfig: (env: NodeJS.ProcessEnv) => C,
  create: (config: C, tls: ServiceTls | undefined) => Service & { readonly stopTimeoutMs: number },
): Promise<void> {
  const [config, telemetryConfig] = orExit(() =>
    readTogether(
      () => readConfig(process.env),
      () => readTelemetryConfig(process.env),
    ),
  );
  const tls = orExit(() => openServiceTls(config));
  const telemetry = await openTelemetry(name, telemetryConfig);
  const service = create(config, tls);
  const { logger, stopTimeoutMs } = service;
  const stopping = new AbortController();
  const start = async () => {
    await telemetry.listen(service.checkReady);
    tls?.watch(logger);
    const { DATABASE_URL } = config;
    for (const [setting, url] of givenRedisUrls(config)) await checkRedisAccess(url, setting);
    if (DATABASE_URL) await waitForDatabase(DATABASE_URL, { logger, signal: stopping.signal });
    if (stopping.signal.aborted) return;
    await service.migrate?.();
    await service.start();
  };
  const stop = () =>
    stopAll(
      () => stopping.abort(),
      () => tls?.close(),
      () => service.stop(),
      () => telemetry.stop(),
    );
  warnOfMisspelt(process.env, (line) => logger.warn(line));
  await runProcess({ start, stop }, logger, stopTimeoutMs);
}

export function orExit<T>(read: () => T): T {
  try {
    return read();
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
    process.stderr.write(`Wrong settings:\n${err.message.replace(/^/gm, '  ')}\n`);
    process.exit(1);
  }
}
