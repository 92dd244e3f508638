import type { Migrations } from '@latchkey/kit/database/migrate';
import * as accountsSessionsApiKeys from './20261120-190000-accounts-sessions-api-keys.ts';
import * as applicationsOfApiKeys from './20261121-010000-applications-of-api-keys.ts';
import * as avatar from './20261121-010000-avatar.ts';
import * as twoFactor from './20261121-020000-two-factor.ts';
import * as oidc from './20261121-030000-oidc.ts';
import * as signInGeneration from './20261121-040000-sign-in-generation.ts';
import * as passwordFailures from './20261121-050000-password-failures.ts';
import * as auditLog from './20261121-060000-audit-log.ts';

export const migrations: Migrations = {
  '20261120-190000-accounts-sessions-api-keys': accountsSessionsApiKeys,
  '20261121-010000-applications-of-api-keys': applicationsOfApiKeys,
  '20261121-010000-avatar': avatar,
  '20261121-020000-two-factor': twoFactor,
  '20261121-030000-oidc': oidc,
  '20261121-040000-sign-in-generation': signInGeneration,
  '20261121-050000-password-failures': passwordFailures,
  '20261121-060000-audit-log': auditLog,
};
