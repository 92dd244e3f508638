import type { Scope } from '@latchkey/client';

/** Every scope of management keys. */
export const SCOPES: readonly Scope[] = [
  'applications:read',
  'applications:create',
  'applications:update',
  'applications:delete',
  'files:upload',
  'files:read',
  'files:delete',
  'account:read',
];
