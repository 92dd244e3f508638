import { ConfigError } from '../config.ts';
import { type Runnable, runProcess } from '../lifecycle.ts';
import type { Logger } from '../logger.ts';
import type { ProcessConfig } from '../process-settings.ts';
import type { PlainRoute } from './plain-route.ts';
import type { RpcRoute } from './route.ts';
import { type RpcServer, startRpcServer } from './server.ts';

/** A composed service that answers RPC. */
export interface RpcService extends Runnable {
  readonly logger: Logger;
  readonly routes: readonly RpcRoute[];
  /** Answered over HTTP/1.1 beside RPC. None unless set. */
  readonly plainRoutes?: readonly PlainRoute[];
  /** Longest time an ordered stop may take, in milliseconds; 30 s unless set. */
  readonly stopTimeoutMs?: number;
  /** Brings the schema up to date. A service without a database has none. */
  migrate?(): Promise<string[]>;
  checkReady(): Promise<void>;
}

/** Longest time the ordered stop of a service without long requests may take, in milliseconds. */
const STOP_TIMEOUT_MS = 30_000;

/**
 * The whole of a service's `main.ts`: settings, composition, server, signals. With the argument `migrate` it brings the schema up to
 * date and ends. Wrong settings end it with code 1 and every problem on standard error.
 */
export async function runService<C extends ProcessConfig>(
  readConfig: (env: NodeJS.ProcessEnv) => C,
  create: (config: C) => RpcService,
): Promise<void> {
  const config = orExit(() => readConfig(process.env));
  const service = create(config);
  if (process.argv[2] === 'migrate') {
    await migrateOnly(service);
    return;
  }
  let server: RpcServer | undefined;
  const start = async () => {
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
    });
    service.logger.info({ port: server.port, grpcPort: server.grpcPort }, 'listening');
  };
  const stop = async () => {
    await server?.stop();
    await service.stop();
  };
  const { logger, stopTimeoutMs = STOP_TIMEOUT_MS } = service;
  await runProcess({ start, stop }, { logger, stopTimeoutMs });
}

async function migrateOnly(service: RpcService): Promise<void> {
  const applied = (await service.migrate?.()) ?? [];
  process.stdout.write(applied.length === 0 ? 'The schema is up to date.\n' : `Applied ${applied.join(', ')}.\n`);
  await service.stop();
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
