import { stopAll } from '@latchkey/kit/lifecycle';
import { runService } from '@latchkey/kit/rpc/service-process';
import { createServiceTransport } from '@latchkey/kit/rpc/transport';
import { readRealtimeProcessConfig } from './config.ts';
import { createRealtimeService } from './service.ts';

await runService(readRealtimeProcessConfig, (config) => {
  const appsTransport = createServiceTransport(config.APPS_URL, config.SERVICE_CREDENTIALS[0]);
  const service = createRealtimeService(config, { appsTransport });
  return { ...service, stop: () => stopAll(service.stop, () => appsTransport.close()) };
});
