import type { Scope } from '@latchkey/client';
import { describeScope, SCOPES } from '@latchkey/contract/scopes';
import styles from './api-keys.module.css';

const isRead = (scope: Scope) => scope.endsWith(':read');
const readsFirst = SCOPES.toSorted((a, b) => Number(isRead(b)) - Number(isRead(a)));

const groups = new Set(SCOPES.map((scope) => scope.replace(/:.*/, '')));

/** Scopes in words, by group. Each group begins with those that only read. */
export const SCOPE_GROUPS = [...groups].map((group) => ({
  name: group.charAt(0).toUpperCase() + group.slice(1),
  scopes: readsFirst.filter((scope) => scope.startsWith(`${group}:`)).map((scope) => ({ scope, ...describeScope(scope) })),
}));

/** The scopes in words, such as "Read files". */
export const nameScopes = (scopes: readonly Scope[]) => scopes.map((scope) => describeScope(scope).name);

function summarizeScopes(scopes: readonly Scope[]): string {
  if (scopes.length === SCOPES.length) return 'Everything';
  const [first = '', second] = nameScopes(scopes);
  if (second === undefined) return first;
  return scopes.length === 2 ? `${first}, ${second.toLowerCase()}` : `${first} and ${scopes.length - 1} more`;
}

/** Column of what has scopes. */
export const scopesColumn = {
  label: 'May do',
  cell: ({ scopes }: { readonly scopes: readonly Scope[] }) => (
    <span className={styles.words} title={nameScopes(scopes).join(', ')}>
      {summarizeScopes(scopes)}
    </span>
  ),
};
