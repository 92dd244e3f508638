import { stopAll } from '@latchkey/kit/lifecycle';
import { runService } from '@latchkey/kit/rpc/service-process';
import { createServiceTransport } from '@latchkey/kit/rpc/transport';
import { readIdentityConfig, readIdentityProcessConfig } from './config.ts';
import { runAccountsProcess } from './operator/accounts-process.ts';
import { createIdentityService } from './service.ts';

const [command, ...args] = process.argv.slice(2);

if (command === 'accounts') {
  await runAccountsProcess({
    command: 'node services/identity/src/main.ts accounts',
    args,
    open: async () => ({ config: readIdentityConfig(process.env), listeners: 'by-redis', close: async () => undefined }),
  });
} else if (command !== undefined && command !== 'migrate') {
  process.stderr.write(`There is no command ${command}; there are accounts and migrate.\n`);
  process.exitCode = 2;
} else {
  await runService(readIdentityProcessConfig, (config) => {
    const appsTransport = createServiceTransport(config.APPS_URL, config.SERVICE_CREDENTIALS[0]);
    const service = createIdentityService(config, { appsTransport });
    return { ...service, stop: () => stopAll(service.stop, () => appsTransport.close()) };
  });
}
