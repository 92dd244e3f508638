import { runProgram } from '@latchkey/kit/process/commands';
import { migrateCommand } from '@latchkey/kit/process/migrate-command';
import { runService } from '@latchkey/kit/process/run-service';
import { readAvatarWorkerConfig, readFilesProcessConfig } from './config.ts';
import { SCHEMA } from './context.ts';
import { migrations } from './db/migrations.ts';
import { createAvatarWorkerService, createFilesService } from './service.ts';

await runProgram({
  program: 'node services/files/src/main.ts',
  commands: {
    'avatar-worker': { summary: 'starts the worker that makes avatars apart from the service', run: serveAvatarWorker },
    migrate: migrateCommand(SCHEMA, migrations),
  },
  serve: () =>
    runService('files', readFilesProcessConfig, (config, connect) => {
      const appsTransport = connect('apps', config.APPS_URL);
      return createFilesService(config, { appsTransport, identityTransport: connect('identity', config.IDENTITY_URL) });
    }),
});

function serveAvatarWorker(): Promise<void> {
  return runService('avatar-worker', readAvatarWorkerConfig, (config, connect) =>
    createAvatarWorkerService(config, connect('identity', config.IDENTITY_URL)),
  );
}
