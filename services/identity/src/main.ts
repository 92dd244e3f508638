import { stopAll } from '@latchkey/kit/lifecycle';
import { runService } from '@latchkey/kit/rpc/service-process';
import { createServiceTransport } from '@latchkey/kit/rpc/transport';
import { readIdentityProcessConfig } from './config.ts';
import { createIdentityService } from './service.ts';

await runService(readIdentityProcessConfig, (config) => {
  const appsTransport = createServiceTransport(config.APPS_URL, config.SERVICE_CREDENTIALS[0]);
  const service = createIdentityService(config, { appsTransport });
  return { ...service, stop: () => stopAll(service.stop, () => appsTransport.close()) };
});
