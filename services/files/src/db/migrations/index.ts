import type { Migrations } from '@latchkey/kit/database/migrate';
import * as files from './20261120-210000-files.ts';

/** All migrations of the service, forward only. */
export const migrations: Migrations = {
  '20261120-210000-files': files,
};
