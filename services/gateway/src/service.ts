import type { AddressInfo } from 'node:net';
import type { Transport } from '@connectrpc/connect';
import { createBufferedCounts } from '@latchkey/kit/concurrency/buffered-counts';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createAccountChanges } from '@latchkey/kit/redis/account-changes';
import { readLiveClients } from '@latchkey/kit/redis/live-clients';
import { connectInBackground, createFailFastRedis } from '@latchkey/kit/redis/redis';
import { redisUrls } from '@latchkey/kit/redis/redis-url';
import { checkServing } from '@latchkey/kit/rpc/client/peer-readiness';
import { createAuthenticator } from './authentication/authenticator.ts';
import { createCookies } from './authentication/cookies.ts';
import { createSignInFailures } from './authentication/sign-in-failures.ts';
import { createClients } from './clients.ts';
import type { GatewayConfig } from './config.ts';
import { createCursorSigner } from './cursor/audit-cursor.ts';
import type { FilesDataPath } from './files-data-path.ts';
import { RateLimiter } from './rate-limit/rate-limiter.ts';
import { createRateLimits } from './rate-limit/rate-limits.ts';
import { createRoutes } from './routes/all-routes.ts';
import { createGate } from './routing/gate.ts';
import { createServer, stopMsMax } from './server.ts';

export interface GatewayDependencies {
  readonly identity: Transport;
  readonly apps: Transport;
  readonly files: Transport;
  readonly filesData: FilesDataPath;
  /** Sign cursors, the same at all gateways: the first signs, any verifies. */
  readonly cursorSecrets: readonly [string, ...string[]];
  readonly logger?: Logger;
  readonly connectionsMax?: number | undefined;
  /** Rejects while a service is not ready; calls their health services unless given. */
  readonly checkReady?: () => Promise<void>;
}

export type GatewayService = ReturnType<typeof createGatewayService>;

export function createGatewayService(config: GatewayConfig, deps: GatewayDependencies) {
  const { filesData, connectionsMax, logger = createLogger('gateway', config.LOG_LEVEL) } = deps;
  const redis = createFailFastRedis(redisUrls(config).limits, logger, { name: 'latchkey-gateway' });
  const changes = createAccountChanges(redisUrls(config).events, logger, 'latchkey-gateway-changes');
  const services = ['identity', 'apps', 'files'] as const;
  const checkServices = async () => void (await Promise.all(services.map((name) => checkServing(deps[name], name))));
  let isStopping = false;
  const checkReady = async () => {
    if (isStopping) throw new Error('the gateway is stopping');
    await (deps.checkReady ?? checkServices)();
  };
  const clients = createClients(deps.identity, deps.apps, deps.files);
  const requests = createBufferedCounts<'apiKeyId', 'requests'>({
    name: 'requests',
    key: 'apiKeyId',
    logger,
    deliver: (counts) => clients.apiKeys.recordApiKeyRequests({ counts }),
  });
  const authenticator = createAuthenticator(clients);
  redis.on('close', () => authenticator.forgetAll());
  const limiter = new RateLimiter(redis, logger, config.REQUEST_BATCH_WAIT_MS);
  const limits = createRateLimits(config);
  const publicUrl = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`;
  const routes = createRoutes({
    clients,
    filesData,
    limits,
    signInFailures: createSignInFailures({ redis, limiter, limit: limits.signInFailures, logger }),
    cookies: createCookies(publicUrl),
    publicUrl,
    oidcReturnUrl: config.OIDC_RETURN_URL,
    dashboardUrl: config.DASHBOARD === 'on' ? publicUrl.replace(/\/+$/, '') : undefined,
    cursors: createCursorSigner(deps.cursorSecrets),
    changes,
    authenticator,
    countLiveClients: (applicationId) => readLiveClients(redis, applicationId),
  });
  const gate = createGate({ authenticator, limiter, limits, publicOrigin: new URL(publicUrl).origin, requests });
  let server: Awaited<ReturnType<typeof createServer>> | undefined;
  return {
    name: 'gateway' as const,
    logger,
    stopTimeoutMs: stopMsMax(config),
    get port(): number {
      return (server?.app.server.address() as AddressInfo | null)?.port ?? config.PORT;
    },
    async start(): Promise<void> {
      await Promise.all([connectInBackground(redis), changes.start()]);
      server = await createServer({ config, logger, gate, clients, routes, filesData, connectionsMax, checkReady });
      await server.app.listen({ host: config.HOST, port: config.PORT });
      requests.start();
    },
    /** Reports not ready, drains, lets accepted requests and uploads end, and closes. */
    stop(): Promise<void> {
      isStopping = true;
      return stopAll(
        // Their responses would go on.
        () => changes.stop(),
        () => server?.drain(),
        () => server?.app.close(),
        () => requests.stop(),
        () => redis.disconnect(),
      );
    },
    checkReady,
  };
}
