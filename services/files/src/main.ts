import { runProgram } from '@latchkey/kit/process/commands';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { migrateCommand } from '@latchkey/kit/process/migrate-command';
import { runService } from '@latchkey/kit/process/run-service';
import { requireCredentialAccepted } from '@latchkey/kit/rpc/client/peer-readiness';
import { createServiceTransport } from '@latchkey/kit/rpc/client/service-transport';
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
  serve: serveFiles,
});

function serveAvatarWorker(): Promise<void> {
  return runService('avatar-worker', readAvatarWorkerConfig, (config, tls) => {
    const identityTransport = createServiceTransport(config.IDENTITY_URL, config.SERVICE_CREDENTIALS[0], { tls });
    const service = createAvatarWorkerService(config, identityTransport);
    const checkReady = requireCredentialAccepted(service.checkReady, { identity: identityTransport });
    return { ...service, checkReady, stop: () => stopAll(service.stop, () => identityTransport.close()) };
  });
}

function serveFiles(): Promise<void> {
  return runService('files', readFilesProcessConfig, (config, tls) => {
    const appsTransport = createServiceTransport(config.APPS_URL, config.SERVICE_CREDENTIALS[0], { tls });
    const identityTransport = createServiceTransport(config.IDENTITY_URL, config.SERVICE_CREDENTIALS[0], { tls });
    const service = createFilesService(config, { appsTransport, identityTransport });
    return {
      ...service,
      checkReady: requireCredentialAccepted(service.checkReady, { apps: appsTransport, identity: identityTransport }),
      stop: () =>
        stopAll(
          () => service.stop(),
          () => appsTransport.close(),
          () => identityTransport.close(),
        ),
    };
  });
}
