import { stopAll } from '@latchkey/kit/lifecycle';
import { runService } from '@latchkey/kit/rpc/service-process';
import { createServiceTransport } from '@latchkey/kit/rpc/transport';
import { createAvatarWorkerService } from './avatar-worker.ts';
import { runCheckProcess } from './check/check-process.ts';
import { readFilesConfig, readFilesProcessConfig } from './config.ts';
import { createFilesService } from './service.ts';

const [command, ...args] = process.argv.slice(2);

if (command === 'check') {
  await runCheckProcess({
    command: 'node services/files/src/main.ts check',
    args,
    open: async () => ({ config: readFilesConfig(process.env), close: async () => undefined }),
  });
} else if (command !== undefined && command !== 'migrate' && command !== 'avatar-worker') {
  process.stderr.write(`There is no command ${command}; there are avatar-worker, check and migrate.\n`);
  process.exitCode = 2;
} else {
  const create = command === 'avatar-worker' ? createAvatarWorkerService : createFilesService;
  await runService(readFilesProcessConfig, (config) => {
    const appsTransport = createServiceTransport(config.APPS_URL, config.SERVICE_CREDENTIALS[0]);
    const identityTransport = createServiceTransport(config.IDENTITY_URL, config.SERVICE_CREDENTIALS[0]);
    const service = create(config, { appsTransport, identityTransport });
    return {
      ...service,
      stop: () =>
        stopAll(
          () => service.stop(),
          () => appsTransport.close(),
          () => identityTransport.close(),
        ),
    };
  });
}
