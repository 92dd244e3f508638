import type { AddressInfo } from 'node:net';
import type { Transport } from '@connectrpc/connect';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { connectInBackground, createFailFastRedis } from '@latchkey/kit/redis/redis';
import { checkServing } from '@latchkey/kit/rpc/client/peer-readiness';
import { Authenticator } from './authentication/authenticator.ts';
import { SignInFailures } from './authentication/sign-in-failures.ts';
import { createClients } from './clients.ts';
import { AVATAR_BYTES_MAX, type GatewayConfig } from './config.ts';
import type { FilesDataPath } from './files-data-path.ts';
import { Limiter } from './limit/limiter.ts';
import { createLimits } from './limit/limits.ts';
import { Gate } from './route/gate.ts';
import { accountLimitsRoute } from './routes/account-limits.ts';
import { apiKeyRoutes } from './routes/api-keys.ts';
import { applicationSettingRoutes } from './routes/application-settings.ts';
import { applicationRoutes } from './routes/applications.ts';
import type { CursorKeys } from './routes/audit-cursor.ts';
import { auditLogRoute } from './routes/audit-log.ts';
import { authRoutes } from './routes/auth.ts';
import { avatarRoutes } from './routes/avatar.ts';
import { fileRoutes } from './routes/files.ts';
import { licenseLevelRoutes } from './routes/license-levels.ts';
import { oidcRoutes } from './routes/oidc.ts';
import { twoFactorRoutes } from './routes/two-factor.ts';
import { uploadFileRoute } from './routes/upload-file.ts';
import { createServer, type GatewayServer, stopMsMax } from './server.ts';

/** How the gateway reaches the services, and what callers may replace. */
export interface GatewayDependencies {
  readonly identity: Transport;
  readonly apps: Transport;
  readonly files: Transport;
  /** How bytes reach the files service. */
  readonly filesData: FilesDataPath;
  /** Keys for cursors, from `toCursorKey`: the first signs, any verifies. */
  readonly cursorKeys: CursorKeys;
  readonly logger?: Logger;
  /** Open connections at most. */
  readonly connectionsMax?: number | undefined;
  /** Rejects while a service behind the gateway is not ready; calls their health services unless given. */
  readonly checkReady?: () => Promise<void>;
}

/** The gateway, not yet started. */
export interface GatewayService {
  readonly name: 'gateway';
  readonly logger: Logger;
  /** Port of the listener, once started. */
  readonly port: number;
  /** Longest time of an ordered stop, in milliseconds: accepted requests end, uploads too. */
  readonly stopTimeoutMs: number;
  start(): Promise<void>;
  /** Reports not ready, drains, lets requests under way end, and closes. */
  stop(): Promise<void>;
  checkReady(): Promise<void>;
}

/** Composes the gateway. */
export function createGatewayService(config: GatewayConfig, deps: GatewayDependencies): GatewayService {
  const { filesData, connectionsMax } = deps;
  const logger = deps.logger ?? createLogger('gateway', config.LOG_LEVEL);
  const redis = createFailFastRedis(config.REDIS_URL, logger, { name: 'latchkey-gateway' });
  const clients = createClients(deps.identity, deps.apps, deps.files);
  const authenticator = new Authenticator(clients);
  redis.on('close', () => authenticator.forgetAll());
  const limiter = new Limiter(redis, logger);
  const limits = createLimits(config);
  const signInFailures = new SignInFailures({ redis, limiter, limit: limits.signInFailures, logger });
  const publicUrl = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`;
  const secureCookie = !isLoopbackHttp(publicUrl);
  const checkDependencies = deps.checkReady ?? (() => checkServices(deps));
  let isStopping = false;
  const checkReady = async () => {
    if (isStopping) throw new Error('the gateway is stopping');
    await checkDependencies();
  };
  const gate = new Gate({ authenticator, limiter, limits, publicOrigin: new URL(publicUrl).origin });
  const routes = [
    ...applicationRoutes(clients),
    ...applicationSettingRoutes(clients),
    ...licenseLevelRoutes(clients),
    ...apiKeyRoutes(clients, limits),
    ...authRoutes({ clients, limits, signInFailures, secureCookie }),
    ...twoFactorRoutes({ clients, limits, signInFailures }),
    ...oidcRoutes({ clients, limits, signInFailures, secureCookie, publicUrl, returnUrl: config.OIDC_RETURN_URL }),
    ...fileRoutes(clients),
    accountLimitsRoute(clients),
    auditLogRoute(clients, deps.cursorKeys),
    uploadFileRoute(clients, filesData, limits),
    ...avatarRoutes({ clients, filesData, limits, byteSizeMax: AVATAR_BYTES_MAX }),
  ];
  let server: GatewayServer | undefined;
  return {
    name: 'gateway',
    logger,
    stopTimeoutMs: stopMsMax(config),
    get port() {
      return (server?.app.server.address() as AddressInfo | null)?.port ?? config.PORT;
    },
    async start() {
      await connectInBackground(redis);
      server = await createServer({ config, logger, gate, clients, routes, filesData, connectionsMax, checkReady });
      await server.app.listen({ host: config.HOST, port: config.PORT });
    },
    stop() {
      isStopping = true;
      return stopAll(
        () => server?.drain(),
        () => server?.app.close(),
        () => redis.disconnect(),
      );
    },
    checkReady,
  };
}

/** Whether browsers use plain HTTP on their own machine, where a `Secure` cookie would be lost (decisions 4). */
function isLoopbackHttp(publicUrl: string): boolean {
  const { protocol, hostname } = new URL(publicUrl);
  return protocol === 'http:' && (hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname));
}

async function checkServices({ identity, apps, files }: GatewayDependencies): Promise<void> {
  await Promise.all([checkServing(identity, 'identity'), checkServing(apps, 'apps'), checkServing(files, 'files')]);
}
