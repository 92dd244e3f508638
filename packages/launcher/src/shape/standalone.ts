import { readAppsConfig } from '@latchkey/apps/config';
import { createAppsService } from '@latchkey/apps/service';
import { StartError } from '@latchkey/embedded/process/start-error';
import { readFilesConfig } from '@latchkey/files/config';
import { createFilesService } from '@latchkey/files/service';
import { readGatewayConfig } from '@latchkey/gateway/config';
import { createGatewayService } from '@latchkey/gateway/service';
import { readIdentityConfig } from '@latchkey/identity/config';
import { createIdentityService } from '@latchkey/identity/service';
import type { ReadinessCheck } from '@latchkey/kit/http/probes';
import { createLogger } from '@latchkey/kit/log/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { healthRoute } from '@latchkey/kit/rpc/grpc/health';
import { openTelemetry, readTelemetryConfig, type Telemetry } from '@latchkey/kit/telemetry/telemetry';
import { readRealtimeConfig } from '@latchkey/realtime/config';
import { createRealtimeService } from '@latchkey/realtime/service';
import { explainListenError, type ListenAddress } from '../addresses.ts';
import { type Launch, metricsUrl, type RunningShape } from '../launch.ts';
import type { Servers } from '../servers.ts';

export async function startStandalone(launch: Launch, servers: Servers): Promise<RunningShape> {
  const { address, realtimeAddress, reporter, stops, signal } = launch;
  let checkReady: ReadinessCheck = () => Promise.reject(new Error('the services are starting'));
  const telemetry = await listenForMetrics(launch, () => checkReady());
  const { apps, identity, files, gateway, realtime } = compose(launch, servers);
  stops.defer(() => apps.stop());
  stops.defer(() => identity.stop());
  stops.defer(() => files.stop());
  await reporter.step(
    'Migrations',
    () => Promise.all([identity.migrate(), apps.migrate(), files.migrate()]),
    (applied) => (applied.flat().length === 0 ? 'none due' : `${applied.flat().length} applied`),
  );
  signal.throwIfAborted();
  await reporter.step('Services', async () => {
    await start(apps);
    await start(identity);
    await start(files);
    stops.defer(() => gateway.stop());
    await start(gateway, address);
    // Services stop in reverse order: the others answer the clients of realtime meanwhile.
    stops.defer(() => realtime.stop());
    await start(realtime, realtimeAddress);
    checkReady = gateway.checkReady;
  });
  const { metricsPort } = telemetry;
  return { internal: {}, metrics: metricsPort === undefined ? {} : { latchkey: metricsUrl(metricsPort) } };
}

/** One endpoint for all services, opened before any of them is composed. */
async function listenForMetrics({ env, logs, stops }: Launch, checkReady: ReadinessCheck): Promise<Telemetry> {
  const config = readTelemetryConfig(env);
  const telemetry = await openTelemetry('standalone', config, createLogger('standalone', 'warn', logs));
  stops.defer(() => telemetry.stop());
  await telemetry.listen(checkReady).catch((err: unknown) => {
    const { host = '', port = 0 } = config.metrics ?? {};
    const sentence = explainListenError(err, { host, port, portSetting: 'METRICS_PORT' });
    throw new StartError(sentence ?? (err as Error).message, { cause: err });
  });
  return telemetry;
}

function compose(launch: Launch, servers: Servers) {
  const { env, address, realtimeAddress, secrets, logs, publicUrl, objectsDir } = launch;
  const common = {
    ...env,
    SECRET_KEY: secrets.secretKey,
    REDIS_URL: servers.redisUrl,
    PUBLIC_URL: publicUrl,
    OBJECTS_DIR: objectsDir,
  };
  const appsConfig = readAppsConfig({ ...common, DATABASE_URL: servers.databaseUrls.apps });
  const identityConfig = readIdentityConfig({ ...common, DATABASE_URL: servers.databaseUrls.identity });
  const filesConfig = readFilesConfig({ ...common, DATABASE_URL: servers.databaseUrls.files });
  const REALTIME_PORT = String(realtimeAddress.port);
  const gatewayConfig = readGatewayConfig({ ...common, HOST: address.host, PORT: String(address.port), REALTIME_PORT });
  const realtimeConfig = readRealtimeConfig({ ...common, REALTIME_HOST: realtimeAddress.host, REALTIME_PORT });
  const loggerOf = (name: string) => createLogger(name, gatewayConfig.LOG_LEVEL, logs);

  const apps = createAppsService(appsConfig, { logger: loggerOf('apps') });
  const appsRoutes = [...apps.routes, healthRoute(apps.checkReady, apps.routes)];
  const appsTransport = createDirectTransport(appsRoutes, loggerOf('apps'));
  const identity = createIdentityService(identityConfig, { appsTransport, logger: loggerOf('identity') });
  const identityTransport = createDirectTransport(identity.routes, loggerOf('identity'));
  const files = createFilesService(filesConfig, { appsTransport, identityTransport, logger: loggerOf('files') });
  const realtime = createRealtimeService(realtimeConfig, { appsTransport, logger: loggerOf('realtime') });
  const gateway = createGatewayService(gatewayConfig, {
    apps: appsTransport,
    identity: identityTransport,
    files: createDirectTransport(files.routes, loggerOf('files')),
    filesData: files.dataPath,
    cursorSecrets: [secrets.secretKey],
    logger: loggerOf('gateway'),
    checkReady: async () => {
      await Promise.all([identity, apps, files, realtime].map((service) => service.checkReady()));
    },
  });
  return { apps, identity, files, gateway, realtime };
}

async function start(service: { name: string; start(): Promise<void> }, address?: ListenAddress): Promise<void> {
  await service.start().catch((err: unknown) => {
    const sentence = address && explainListenError(err, address);
    throw new StartError(sentence ?? `The service ${service.name} did not start: ${(err as Error).message}`, { cause: err });
  });
}
