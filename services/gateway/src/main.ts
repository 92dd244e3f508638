import { runProgram } from '@latchkey/kit/process/commands';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createServiceTransport } from '@latchkey/kit/rpc/client/service-transport';
import { runServiceProcess } from '@latchkey/kit/rpc/server/service-process';
import { readGatewayProcessConfig, uploadMsMax } from './config.ts';
import { createRemoteFilesDataPath } from './files-data-path.remote.ts';
import { toCursorKey } from './routes/audit-cursor.ts';
import { createGatewayService } from './service.ts';

await runProgram({
  program: 'node services/gateway/src/main.ts',
  commands: {},
  serve: () =>
    runServiceProcess('gateway', readGatewayProcessConfig, (config, tls) => {
      const [credential, ...otherCredentials] = config.SERVICE_CREDENTIALS;
      const cursorKeys = [toCursorKey(credential), ...otherCredentials.map(toCursorKey)] as const;
      const connect = (url: string) => createServiceTransport(url, credential, { tls });
      const [identity, apps, files] = [connect(config.IDENTITY_URL), connect(config.APPS_URL), connect(config.FILES_URL)];
      const uploadTimeoutMs = uploadMsMax(config);
      const filesData = createRemoteFilesDataPath({ baseUrl: config.FILES_URL, credential, tls, uploadTimeoutMs });
      const gateway = createGatewayService(config, { identity, apps, files, filesData, cursorKeys });
      const { logger, stopTimeoutMs, checkReady } = gateway;
      const start = async () => {
        await gateway.start();
        logger.info({ port: gateway.port }, 'listening');
      };
      const stop = () =>
        stopAll(
          () => gateway.stop(),
          () => Promise.all([identity.close(), apps.close(), files.close()]),
        );
      return { logger, stopTimeoutMs, checkReady, start, stop };
    }),
});
