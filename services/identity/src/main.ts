import { runProgram } from '@latchkey/kit/process/commands';
import { migrateCommand } from '@latchkey/kit/process/migrate-command';
import { runService } from '@latchkey/kit/process/run-service';
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
    runService('identity', readIdentityProcessConfig, (config, connect) =>
      createIdentityService(config, { appsTransport: connect('apps', config.APPS_URL) }),
    ),
});
