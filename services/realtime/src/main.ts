import { setFlagsFromString } from 'node:v8';
import { runProgram } from '@latchkey/kit/process/commands';
import { runService } from '@latchkey/kit/process/run-service';
import { readRealtimeProcessConfig } from './config.ts';
import { createRealtimeService } from './service.ts';

// V8 would let the heap double before a collection: garbage of upgrades stays beside live sockets.
setFlagsFromString('--heap-growing-percent=30');

await runProgram({
  program: 'node services/realtime/src/main.ts',
  commands: {},
  serve: () =>
    runService('realtime', readRealtimeProcessConfig, (config, connect) =>
      createRealtimeService(config, { appsTransport: connect('apps', config.APPS_URL) }),
    ),
});
