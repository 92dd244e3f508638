import { EXIT, runCheck } from '@latchkey/files/storage/reconciler/check-command';
import { filesConfigFor } from '../check-files.ts';
import { BackupError } from './backup-command.ts';

/**
 * Runs check-files, checksums included, on a copied or restored database and its objects.
 *
 * @throws {BackupError} when anything is wrong
 */
export async function checkCopy(databaseUrl: string, objectsDir: string, note: (line: string) => void): Promise<void> {
  note('  Comparing the database with the files, checksums included.');
  const code = await runCheck(
    filesConfigFor({}, databaseUrl, objectsDir),
    { mend: false, skipChecksums: false, force: false },
    { command: 'npm run check-files --', out: process.stderr, err: process.stderr },
  );
  if (code !== EXIT.done)
    throw new BackupError('The copy is not intact, as shown above. Run npm run check-files, then try again.');
}
