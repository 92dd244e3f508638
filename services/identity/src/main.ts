import { runProgram } from '@latchkey/kit/process/commands';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { migrateCommand } from '@latchkey/kit/process/migrate-command';
import { runService } from '@latchkey/kit/process/run-service';
import { requireCredentialAccepted } from '@latchkey/kit/rpc/client/peer-readiness';
import { createServiceTransport } from '@latchkey/kit/rpc/client/service-transport';
import { readIdentityProcessConfig } from './config.ts';
import { SCHEMA } from './context.ts';
import { migrations } from './db/migrations.ts';
import { createIdentityService } from './service.ts';

await runProgram({
  program: 'node services/identity/src/main.ts',
  commands: {
    migrate: migrateCommand(SCHEMA, migrations),
  },
  serve: () =>
    runService('identity', readIdentityProcessConfig, (config, tls) => {
      const appsTransport = createServiceTransport(config.APPS_URL, config.SERVICE_CREDENTIALS[0], { tls });
      const service = createIdentityService(config, { appsTransport });
      const checkReady = requireCredentialAccepted(service.checkReady, { apps: appsTransport });
      return { ...service, checkReady, stop: () => stopAll(service.stop, () => appsTransport.close()) };
    }),
});
