import type { Migrations } from '@latchkey/kit/database/migrate';
import * as applications from './20261120-180000-applications.ts';

/** All migrations of the service, forward only. */
export const migrations: Migrations = {
  '20261120-180000-applications': applications,
};
