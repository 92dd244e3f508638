import { runProgram } from '@latchkey/kit/process/commands';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { runWithoutRpc } from '@latchkey/kit/process/run-service';
import { createServiceTransport } from '@latchkey/kit/rpc/client/service-transport';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { readGatewayProcessConfig, uploadMsMax } from './config.ts';
import { createRemoteFilesDataPath } from './files-data-path.remote.ts';
import { createGatewayService } from './service.ts';

await runProgram({
  program: 'node services/gateway/src/main.ts',
  commands: {},
  serve: () =>
    runWithoutRpc('gateway', readGatewayProcessConfig, (config, tls) => {
      const [credential] = config.SERVICE_CREDENTIALS;
      const identity = createServiceTransport(config.IDENTITY_URL, credential, { tls });
      const isBatched = (method: unknown) => method === ApplicationService.method.getApplicationSettings;
      const apps = createServiceTransport(config.APPS_URL, credential, { tls, isBatched });
      const files = createServiceTransport(config.FILES_URL, credential, { tls });
      const uploadTimeoutMs = uploadMsMax(config);
      const filesData = createRemoteFilesDataPath({ baseUrl: config.FILES_URL, credential, tls, uploadTimeoutMs });
      const gateway = createGatewayService(config, {
        identity,
        apps,
        files,
        filesData,
        cursorSecrets: config.SERVICE_CREDENTIALS,
      });
      return {
        ...gateway,
        async start() {
          await gateway.start();
          gateway.logger.info({ port: gateway.port }, 'listening');
        },
        stop: () =>
          stopAll(
            () => gateway.stop(),
            () => Promise.all([identity.close(), apps.close(), files.close()]),
          ),
      };
    }),
});
