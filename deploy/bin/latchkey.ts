#!/usr/bin/env node
import { runProcess } from '@latchkey/cli/program/run-process';

const close = async () => undefined;

// `latchkey` of the image: `admin` runs with the settings of the service whose container it is in.
await runProcess({
  async accounts(command, args) {
    const { readIdentityConfig } = await import('@latchkey/identity/config');
    const { runAccountsProcess } = await import('@latchkey/identity/operator/accounts-process');
    const open = async () => ({ config: readIdentityConfig(process.env), listeners: 'by-redis' as const, close });
    await runAccountsProcess({ command, args, open });
  },
  async 'check-files'(command, args) {
    const { readFilesConfig } = await import('@latchkey/files/config');
    const { runCheckCommand } = await import('@latchkey/files/storage/reconciler/check-command');
    await runCheckCommand(command, args, async () => ({ config: readFilesConfig(process.env), close }));
  },
});
