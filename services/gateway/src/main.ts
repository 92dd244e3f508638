import { runProcess } from '@latchkey/kit/lifecycle';
import { orExit } from '@latchkey/kit/rpc/service-process';
import { createServiceTransport } from '@latchkey/kit/rpc/transport';
import { readGatewayProcessConfig, uploadMsMax } from './config.ts';
import { createRemoteFilesDataPath } from './files-data-path.remote.ts';
import { createGatewayService } from './service.ts';

const config = orExit(() => readGatewayProcessConfig(process.env));
const credential = config.SERVICE_CREDENTIALS[0] as string;
const identity = createServiceTransport(config.IDENTITY_URL, credential);
const apps = createServiceTransport(config.APPS_URL, credential);
const files = createServiceTransport(config.FILES_URL, credential);
const filesData = createRemoteFilesDataPath({ baseUrl: config.FILES_URL, credential, uploadTimeoutMs: uploadMsMax(config) });
const gateway = createGatewayService(config, { identity, apps, files, filesData });

const stop = async () => {
  await gateway.stop();
  await Promise.all([identity.close(), apps.close(), files.close(), filesData.close()]);
};
const { logger, stopTimeoutMs } = gateway;
await runProcess({ start: () => gateway.start(), stop }, { logger, stopTimeoutMs });
