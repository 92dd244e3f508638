import { warnOfMisspelt } from '@latchkey/kit/config/misspelt-settings';
import { readTogether } from '@latchkey/kit/config/settings';
import { runProgram } from '@latchkey/kit/process/commands';
import { runProcess, stopAll } from '@latchkey/kit/process/lifecycle';
import { checkRedisAccess } from '@latchkey/kit/redis/redis';
import { createServiceTransport } from '@latchkey/kit/rpc/client/service-transport';
import { orExit } from '@latchkey/kit/rpc/server/service-process';
import { openTelemetry, readTelemetryConfig } from '@latchkey/kit/telemetry/telemetry';
import { openServiceTls } from '@latchkey/kit/tls/tls-settings';
import { readGatewayProcessConfig, uploadMsMax } from './config.ts';
import { createRemoteFilesDataPath } from './files-data-path.remote.ts';
import { createGatewayService } from './service.ts';

await runProgram({ program: 'node services/gateway/src/main.ts', commands: {}, serve });

async function serve(): Promise<void> {
  const [config, telemetryConfig] = orExit(() =>
    readTogether(
      () => readGatewayProcessConfig(process.env),
      () => readTelemetryConfig(process.env),
    ),
  );
  const telemetry = await openTelemetry('gateway', telemetryConfig);
  const tls = orExit(() => openServiceTls(config));
  const [credential] = config.SERVICE_CREDENTIALS;
  const identity = createServiceTransport(config.IDENTITY_URL, credential, { tls });
  const apps = createServiceTransport(config.APPS_URL, credential, { tls });
  const files = createServiceTransport(config.FILES_URL, credential, { tls });
  const filesData = createRemoteFilesDataPath({
    baseUrl: config.FILES_URL,
    credential,
    tls,
    uploadTimeoutMs: uploadMsMax(config),
  });
  const gateway = createGatewayService(config, { identity, apps, files, filesData, cursorSecrets: config.SERVICE_CREDENTIALS });

  const start = async () => {
    await telemetry.listen(gateway.checkReady);
    tls?.watch(gateway.logger);
    await checkRedisAccess(config.REDIS_URL);
    await gateway.start();
    gateway.logger.info({ port: gateway.port }, 'listening');
  };
  const stop = () =>
    stopAll(
      () => tls?.close(),
      () => gateway.stop(),
      () => Promise.all([identity.close(), apps.close(), files.close(), filesData.close()]),
      () => telemetry.stop(),
    );
  const { logger, stopTimeoutMs } = gateway;
  warnOfMisspelt(process.env, (line) => logger.warn(line));
  await runProcess({ start, stop }, { logger, stopTimeoutMs });
}
