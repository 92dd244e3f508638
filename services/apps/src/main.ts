import { runProgram } from '@latchkey/kit/process/commands';
import { migrateCommand } from '@latchkey/kit/process/migrate-command';
import { runService } from '@latchkey/kit/process/run-service';
import { readAppsProcessConfig } from './config.ts';
import { migrations } from './db/migrations.ts';
import { newEpochCommand } from './event/new-epoch-command.ts';
import { createAppsService, SCHEMA } from './service.ts';

await runProgram({
  program: 'node services/apps/src/main.ts',
  commands: { migrate: migrateCommand(SCHEMA, migrations), 'new-epoch': newEpochCommand },
  serve: () => runService('apps', readAppsProcessConfig, (config) => createAppsService(config)),
});
