import { AUDIT_ACTIONS, type AuditAction } from '@latchkey/contract/audit-actions';
import type { IconName } from '../../components/icon.tsx';

/** Groups of actions, by the word before the dot. */
const GROUPS: ReadonlyArray<readonly [name: string, icon: IconName, subjects: readonly string[]]> = [
  ['Account', 'account', ['account', 'trusted_issuer']],
  ['API keys', 'key', ['api_key']],
  ['Applications', 'applications', ['application']],
  ['Releases', 'upload', ['release']],
  ['Files', 'file', ['file']],
  ['Audit log', 'log', ['audit_log']],
];

const isOf = (action: string, subjects: readonly string[]) => subjects.includes(action.replace(/\..*/, ''));

/** The names of each group with their codes. */
export const ACTION_GROUPS = GROUPS.map(
  ([name, , subjects]) => [name, Object.entries(AUDIT_ACTIONS).filter(([action]) => isOf(action, subjects))] as const,
);

/** Later releases may add actions: those show their code. */
export const nameAction = (action: string) =>
  Object.hasOwn(AUDIT_ACTIONS, action) ? AUDIT_ACTIONS[action as AuditAction] : action;

export const findIcon = (action: string) => GROUPS.find(([, , subjects]) => isOf(action, subjects))?.[1] ?? 'info';
