import type { Migrations } from '@latchkey/kit/database/migrate';
import * as accountsSessionsApiKeys from './20261120-190000-accounts-sessions-api-keys.ts';
import * as applicationsOfApiKeys from './20261121-010000-applications-of-api-keys.ts';

/** All migrations of the service, forward only. */
export const migrations: Migrations = {
  '20261120-190000-accounts-sessions-api-keys': accountsSessionsApiKeys,
  '20261121-010000-applications-of-api-keys': applicationsOfApiKeys,
};
