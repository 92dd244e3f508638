import type { Migrations } from '@latchkey/kit/database/migrate';
import * as files from './20261120-210000-files.ts';
import * as avatars from './20261121-013000-avatars.ts';
import * as avatarsOfAccount from './20261121-053000-avatars-of-account.ts';
import * as auditLog from './20261121-060000-audit-log.ts';

/** All migrations of the service, forward only. */
export const migrations: Migrations = {
  '20261120-210000-files': files,
  '20261121-013000-avatars': avatars,
  '20261121-053000-avatars-of-account': avatarsOfAccount,
  '20261121-060000-audit-log': auditLog,
};
