/** Scopes of management keys, each with its name and meaning. */
const SCOPE_TEXTS = {
  'applications:read': ['Read applications', 'Names, settings, levels, and the runtime keys of applications.'],
  'applications:create': ['Create applications', 'New applications. A key for chosen applications cannot use those.'],
  'applications:update': ['Change applications', 'Status, version, settings and levels; rotate runtime keys.'],
  'applications:delete': ['Delete applications', 'With their files and keys, without a two-factor code.'],
  'files:upload': ['Upload files', 'Add and replace files, and check names.'],
  'files:read': ['Read files', 'List and download.'],
  'files:delete': ['Change and delete files', 'Rename and delete.'],
  'releases:write': ['Publish releases', 'Create, publish and yank releases, and pin their signing keys.'],
  'account:read': ['Read limits', 'Limits and usage of the account.'],
} as const;

export type Scope = keyof typeof SCOPE_TEXTS;

export const SCOPES = Object.keys(SCOPE_TEXTS) as readonly Scope[];

/** Name and meaning of a scope, for people. */
export function describeScope(scope: Scope) {
  const [name, meaning] = SCOPE_TEXTS[scope];
  return { name, meaning };
}
