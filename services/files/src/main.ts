import { runProgram } from '@latchkey/kit/commands';
import { stopAll } from '@latchkey/kit/lifecycle';
import { migrateCommand } from '@latchkey/kit/migrate-process';
import { whileCredentialTaken } from '@latchkey/kit/rpc/check-credential';
import { runService } from '@latchkey/kit/rpc/service-process';
import { createServiceTransport } from '@latchkey/kit/rpc/transport';
import { createAvatarWorkerService } from './avatar-worker.ts';
import { SCHEMA } from './compose.ts';
import { readAvatarWorkerConfig, readFilesConfig, readFilesProcessConfig } from './config.ts';
import { migrations } from './db/migrations/index.ts';
import { createFilesService } from './service.ts';
import { runCheckCommand } from './storage/reconciler/check-command.ts';

const PROGRAM = 'node services/files/src/main.ts';

await runProgram({
  program: PROGRAM,
  commands: {
    'avatar-worker': { summary: 'starts the worker that makes avatars apart from the service', run: serveAvatarWorker },
    check: {
      summary: 'compares files, objects and checksums; see check --help',
      takesArguments: true,
      run: (args) =>
        runCheckCommand({
          command: `${PROGRAM} check`,
          args,
          open: async () => ({ config: readFilesConfig(process.env), close: async () => undefined }),
        }),
    },
    migrate: migrateCommand(SCHEMA, migrations),
  },
  serve: serveFiles,
});

function serveAvatarWorker(): Promise<void> {
  return runService('avatar-worker', readAvatarWorkerConfig, (config, tls) => {
    const identityTransport = createServiceTransport(config.IDENTITY_URL, config.SERVICE_CREDENTIALS[0], { tls });
    const service = createAvatarWorkerService(config, { identityTransport });
    const checkReady = whileCredentialTaken(service.checkReady, { identity: identityTransport });
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
      checkReady: whileCredentialTaken(service.checkReady, { apps: appsTransport, identity: identityTransport }),
      stop: () =>
        stopAll(
          () => service.stop(),
          () => appsTransport.close(),
          () => identityTransport.close(),
        ),
    };
  });
}
