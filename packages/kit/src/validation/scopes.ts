/** Scopes of management keys. */
export const SCOPES = [
  'applications:read',
  'applications:create',
  'applications:update',
  'applications:delete',
  'files:upload',
  'files:read',
  'files:delete',
  'account:read',
] as const;

export type Scope = (typeof SCOPES)[number];
