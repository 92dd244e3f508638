/** What operations are grouped by, and what each group is for. */
export const TAGS = {
  Applications: 'Software products that are licensed through the service.',
  'Application settings': 'Status, version, license requirements and runtime keys of an application.',
  'License levels': 'Names of the levels that licenses of an application may have.',
  Files: 'Private files of an application.',
  'API keys': 'Management API keys, which scripts call this interface with.',
  Accounts: 'Sign-up, sign-in, sessions, two-factor authentication, avatars, limits and the audit log.',
} as const;

export type Tag = keyof typeof TAGS;
