import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import { FileMigrationProvider } from 'kysely/migration';

/** The service's migrations, a file each, forward only. */
export const migrations = await new FileMigrationProvider({
  fs,
  path,
  migrationFolder: path.join(import.meta.dirname, 'migrations'),
  import: (file) => import(file),
}).getMigrations();
