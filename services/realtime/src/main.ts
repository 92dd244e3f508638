import { setFlagsFromString } from 'node:v8';
import { runProgram } from '@latchkey/kit/process/commands';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { runService } from '@latchkey/kit/process/run-service';
import { createServiceTransport } from '@latchkey/kit/rpc/client/service-transport';
import { readRealtimeProcessConfig } from './config.ts';
import { createRealtimeService } from './service.ts';

// V8 would let the heap double before a collection: garbage of upgrades stays beside live sockets.
setFlagsFromString('--heap-growing-percent=30');

await runProgram({
  program: 'node services/realtime/src/main.ts',
  commands: {},
  serve: () =>
    runService('realtime', readRealtimeProcessConfig, (config, tls) => {
      const appsTransport = createServiceTransport(config.APPS_URL, config.SERVICE_CREDENTIALS[0], { tls });
      const service = createRealtimeService(config, { appsTransport });
      return { ...service, stop: () => stopAll(service.stop, () => appsTransport.close()) };
    }),
});
