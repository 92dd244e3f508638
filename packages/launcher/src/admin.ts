import type { AdminPrograms } from '@latchkey/cli/commands/admin';

const note = (line: string) => process.stderr.write(`${line}\n`);

/** `latchkey admin` in a checkout: with the settings of `npm start`, next to its data folder. */
export const adminPrograms: AdminPrograms = {
  async accounts(command, args) {
    const { runAccountsProcess } = await import('@latchkey/identity/operator/accounts-process');
    const { openAccountsTarget } = await import('./accounts.ts');
    await runAccountsProcess({ command, args, open: () => openAccountsTarget(process.env, note) });
  },
  async 'check-files'(command, args) {
    const { runCheckCommand } = await import('@latchkey/files/storage/reconciler/check-command');
    const { openCheckTarget } = await import('./check-files.ts');
    await runCheckCommand(command, args, () => openCheckTarget(process.env, note));
  },
  async backup(command, args) {
    const { backUp } = await import('./backup/backup.ts');
    const { BACKUP_HELP, runBackupCommand } = await import('./backup/backup-command.ts');
    await runBackupCommand(command, args, BACKUP_HELP, backUp);
  },
  async restore(command, args) {
    const { restore } = await import('./backup/restore.ts');
    const { RESTORE_HELP, runBackupCommand } = await import('./backup/backup-command.ts');
    await runBackupCommand(command, args, RESTORE_HELP, restore);
  },
};
