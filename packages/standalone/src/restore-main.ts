import { runBackupCommand } from './backup/backup-command.ts';
import { restore } from './backup/restore.ts';

await runBackupCommand(
  `Usage: npm run restore -- <folder or file.tar>

Restores a backup that npm run backup made. Verifies its checksums first, and compares the database with the
files afterwards. Nothing is overwritten.

  DATA_DIR   the data folder to restore to (.data); it has to be empty or absent
`,
  restore,
);
