import { backUp } from './backup/backup.ts';
import { runBackupCommand } from './backup/backup-command.ts';

await runBackupCommand(
  `Usage: npm run backup -- <folder or file.tar>

Backs up the data folder of npm start: database, files and secrets. Latchkey may run meanwhile. The backup
shows one moment; it is started and compared with its files before it gets its name. Nothing is overwritten.

  DATA_DIR   the data folder (.data)
`,
  backUp,
);
