import { join } from 'node:path';
import { readMigrations } from '@latchkey/kit/database/migrate';

export const migrations = await readMigrations(join(import.meta.dirname, 'migrations'));
