import { ConfigError, readTogether } from '../config.ts';
import { waitForDatabase } from '../database/database-wait.ts';
import { type Runnable, runProcess, stopAll } from '../lifecycle.ts';
import type { Logger } from '../logger.ts';
import { warnOfMisspelt } from '../misspelt-settings.ts';
import { checkPorts, portsOf } from '../ports.ts';
import type { ProcessConfig } from '../process-settings.ts';
import { checkRedisAccess } from '../redis.ts';
import { openTelemetry, readTelemetryConfig } from '../telemetry.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import { openServiceTls } from '../tls/tls-settings.ts';
import type { PlainRoute } from './plain-route.ts';
import { DEADLINE_MS_MAX, type RpcRoute } from './route.ts';
import { type RpcServer, startRpcServer } from './server.ts';

/** A composed service that answers RPC. */
export interface RpcService extends Runnable {
  readonly logger: Logger;
  readonly routes: readonly RpcRoute[];
  /** Answered over HTTP/1.1 beside RPC. None unless set. */
  readonly plainRoutes?: readonly PlainRoute[];
  /** Longest time an ordered stop may take, in milliseconds; 75 s unless set. */
  readonly stopTimeoutMs?: number;
  /** Brings the schema up to date. A service without a database has none. */
  migrate?(): Promise<string[]>;
  checkReady(): Promise<void>;
}

/** Longest time that the ordered stop of a service may take whose requests are all calls, in milliseconds: whatever it has accepted may end. */
const STOP_MS_MAX = DEADLINE_MS_MAX + 15_000;

/**
 * The whole of a service's `main.ts`: settings, composition, server, signals. Wrong settings end it with code 1 and every problem on standard
 * error; a Redis or a database that refuses it, with code 1 and what they say in the log.
 *
 * @param name what metrics and traces call the process
 * @param create composes the service, with what its calls of others are secured with
 */
export async function runService<C extends ProcessConfig>(
  name: string,
  readConfig: (env: NodeJS.ProcessEnv) => C,
  create: (config: C, tls: ServiceTls | undefined) => RpcService,
): Promise<void> {
  const [config, telemetryConfig] = orExit(() =>
    readTogether(
      () => readConfig(process.env),
      () => readTelemetryConfig(process.env),
    ),
  );
  orExit(() => checkPorts(portsOf(config, telemetryConfig.metrics)));
  const tls = orExit(() => openServiceTls(config));
  const telemetry = await openTelemetry(name, telemetryConfig);
  const service = create(config, tls);
  const stopping = new AbortController();
  let server: RpcServer | undefined;
  const start = async () => {
    await telemetry.listen();
    tls?.watch(service.logger);
    const { DATABASE_URL, REDIS_URL } = config;
    if (REDIS_URL) await checkRedisAccess(REDIS_URL);
    if (DATABASE_URL) await waitForDatabase(DATABASE_URL, { logger: service.logger, signal: stopping.signal });
    if (stopping.signal.aborted) return;
    if (config.MIGRATE_ON_START === 'true') await service.migrate?.();
    await service.start();
    server = await startRpcServer({
      routes: service.routes,
      ...(service.plainRoutes && { plainRoutes: service.plainRoutes }),
      logger: service.logger,
      credentials: config.SERVICE_CREDENTIALS,
      checkReady: service.checkReady,
      host: config.HOST,
      port: config.PORT,
      grpcPort: config.GRPC_PORT,
      probePort: config.PROBE_PORT,
      callsAtOnce: config.CALLS_AT_ONCE,
      connectionsMax: config.CONNECTIONS_MAX,
      connectionsPerIp: config.CONNECTIONS_PER_IP,
      tls,
    });
    const { port, grpcPort, probePort } = server;
    service.logger.info({ port, grpcPort, probePort }, 'listening');
  };
  const stop = () =>
    stopAll(
      () => stopping.abort(),
      () => tls?.close(),
      () => server?.stop(),
      () => service.stop(),
      () => telemetry.stop(),
    );
  const { logger, stopTimeoutMs = STOP_MS_MAX } = service;
  warnOfMisspelt(process.env, (line) => logger.warn(line));
  await runProcess({ start, stop }, { logger, stopTimeoutMs });
}

/** Reads settings, or ends the process with what is wrong with them. */
export function orExit<T>(read: () => T): T {
  try {
    return read();
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
    process.stderr.write(`Wrong settings:\n${err.message.replace(/^/gm, '  ')}\n`);
    process.exit(1);
  }
}
