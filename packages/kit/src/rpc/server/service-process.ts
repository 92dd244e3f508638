import { warnOfMisspelt } from '../../config/misspelt-settings.ts';
import type { ProcessConfig } from '../../config/process-settings.ts';
import { ConfigError, readTogether } from '../../config/settings.ts';
import { waitForDatabase } from '../../database/database-wait.ts';
import { cachedReadiness, type ReadinessCheck } from '../../http/cached-readiness.ts';
import type { Logger } from '../../log/logger.ts';
import { type Runnable, runProcess, stopAll } from '../../process/lifecycle.ts';
import { checkRedisAccess } from '../../redis/redis.ts';
import { openTelemetry, readTelemetryConfig } from '../../telemetry/telemetry.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { openServiceTls } from '../../tls/tls-settings.ts';
import { DEADLINE_MS_MAX, type RpcRoute } from '../route.ts';
import type { HttpRoute } from './http-route.ts';
import { type RpcServer, startRpcServer } from './server.ts';

/** A composed service of any kind. */
export interface ProcessService extends Runnable {
  readonly logger: Logger;
  /** Longest time for an ordered stop, in milliseconds. */
  readonly stopTimeoutMs: number;
  readonly checkReady: ReadinessCheck;
}

/** A composed service that answers RPC. */
export interface RpcService extends Omit<ProcessService, 'stopTimeoutMs'> {
  readonly routes: readonly RpcRoute[];
  /** Served over HTTP/1.1 beside RPC. */
  readonly httpRoutes?: readonly HttpRoute[];
  /** 75 s unless set. */
  readonly stopTimeoutMs?: number;
  /** Migrates the schema. A service without a database has none. */
  migrate?(): Promise<string[]>;
}

/** Longest time for an ordered stop of a service whose requests are all calls, in milliseconds. */
const STOP_MS_MAX = DEADLINE_MS_MAX + 15_000;

/**
 * The whole of a `main.ts`: settings, composition, telemetry, signals. Wrong settings end the process
 * with code 1 and every problem on standard error; a Redis that rejects it, with code 1 and the
 * reason in the log.
 *
 * @param name of the process in metrics and traces
 * @param create composes the service; `tls` secures its connections to other services
 */
export async function runServiceProcess<C extends Parameters<typeof openServiceTls>[0] & { readonly REDIS_URL?: string }>(
  name: string,
  readConfig: (env: NodeJS.ProcessEnv) => C,
  create: (config: C, tls: ServiceTls | undefined) => ProcessService,
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
  let isStarted = false;
  const start = async () => {
    await telemetry.listen(async () => {
      if (!isStarted) throw new Error('the service is starting');
      await service.checkReady();
    });
    tls?.watch(logger);
    if (config.REDIS_URL) await checkRedisAccess(config.REDIS_URL);
    await service.start();
    isStarted = true;
  };
  const stop = () =>
    stopAll(
      () => tls?.close(),
      () => service.stop(),
      () => telemetry.stop(),
    );
  warnOfMisspelt(process.env, (line) => logger.warn(line));
  await runProcess({ start, stop }, { logger, stopTimeoutMs });
}

/** {@link runServiceProcess} for a service that answers RPC, once its database is reachable and migrated. */
export function runService<C extends ProcessConfig>(
  name: string,
  readConfig: (env: NodeJS.ProcessEnv) => C,
  create: (config: C, tls: ServiceTls | undefined) => RpcService,
): Promise<void> {
  return runServiceProcess(name, readConfig, (config, tls) => {
    const service = create(config, tls);
    const { logger, stopTimeoutMs = STOP_MS_MAX } = service;
    const checkReady = cachedReadiness(service.checkReady, logger);
    const stopping = new AbortController();
    let server: RpcServer | undefined;
    const start = async () => {
      if (config.DATABASE_URL) await waitForDatabase(config.DATABASE_URL, { logger, signal: stopping.signal });
      if (stopping.signal.aborted) return;
      if (config.MIGRATE_ON_START === 'true') await service.migrate?.();
      await service.start();
      const { HOST: host, PORT: port, GRPC_PORT: grpcPort, SERVICE_CREDENTIALS: credentials } = config;
      const limits = { connectionsPerIp: config.CONNECTIONS_PER_IP };
      server = await startRpcServer({ ...service, checkReady, credentials, host, port, grpcPort, tls, limits });
      logger.info({ port: server.port, grpcPort: server.grpcPort }, 'listening');
    };
    const stop = () =>
      stopAll(
        () => stopping.abort(),
        () => server?.stop(),
        () => service.stop(),
      );
    return { logger, stopTimeoutMs, checkReady, start, stop };
  });
}

/** Reads settings, or ends the process with their problems. */
export function orExit<T>(read: () => T): T {
  try {
    return read();
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
    process.stderr.write(`Wrong settings:\n${err.message.replace(/^/gm, '  ')}\n`);
    process.exit(1);
  }
}
