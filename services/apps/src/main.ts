import { runProgram } from '@latchkey/kit/process/commands';
import { migrateCommand } from '@latchkey/kit/process/migrate-command';
import { runService } from '@latchkey/kit/rpc/server/service-process';
import { readAppsProcessConfig } from './config.ts';
import { migrations } from './db/migrations.ts';
import { createAppsService, SCHEMA } from './service.ts';

await runProgram({
  program: 'node services/apps/src/main.ts',
  commands: { migrate: migrateCommand(SCHEMA, migrations) },
  serve: () => runService('apps', readAppsProcessConfig, (config) => createAppsService(config)),
});
