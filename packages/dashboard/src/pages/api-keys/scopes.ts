import type { Scope } from '@latchkey/client';

interface ScopeGroup {
  readonly name: string;
  readonly scopes: ReadonlyArray<readonly [scope: Scope, name: string, meaning: string]>;
}

export const SCOPE_GROUPS: readonly ScopeGroup[] = [
  {
    name: 'Applications',
    scopes: [
      ['applications:read', 'Read applications', 'Names, settings, levels, and the runtime keys of applications.'],
      ['applications:create', 'Create applications', 'New applications. A key for chosen applications cannot use those.'],
      ['applications:update', 'Change applications', 'Status, version, settings and levels; rotate runtime keys.'],
      ['applications:delete', 'Delete applications', 'With their files and keys, without a two-factor code.'],
    ],
  },
  {
    name: 'Files',
    scopes: [
      ['files:read', 'Read files', 'List and download.'],
      ['files:upload', 'Upload files', 'Add files, and check names.'],
      ['files:delete', 'Change and delete files', 'Rename and delete.'],
    ],
  },
  { name: 'Account', scopes: [['account:read', 'Read limits', 'Limits and usage of the account.']] },
];

const SCOPES = SCOPE_GROUPS.flatMap(({ scopes }) => scopes);

const names = new Map<string, string>(SCOPES.map(([scope, name]) => [scope, name]));

/** The scopes in words, such as "Read files". */
export const nameScopes = (scopes: readonly string[]) => scopes.map((scope) => names.get(scope) ?? scope);

export function summarizeScopes(scopes: readonly Scope[]): string {
  if (scopes.length === SCOPES.length) return 'Everything';
  const [first = '', second] = nameScopes(scopes);
  if (second === undefined) return first;
  return scopes.length === 2 ? `${first}, ${second.toLowerCase()}` : `${first} and ${scopes.length - 1} more`;
}
