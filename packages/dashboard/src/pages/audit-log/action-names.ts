import type { IconName } from '../../components/icon.tsx';

/** The actions of the audit log, in words. */
const NAMES: Readonly<Record<string, string>> = {
  'account.created': 'Account created',
  'account.signed_in': 'Signed in',
  'account.sign_in_failed': 'Sign-in failed',
  'account.proof_failed': 'Wrong password or code in a session',
  'account.signed_out': 'Signed out',
  'account.signed_out_everywhere': 'Signed out everywhere',
  'account.session_ended': 'Session ended',
  'account.two_factor_enabled': 'Two-factor authentication turned on',
  'account.two_factor_disabled': 'Two-factor authentication turned off',
  'account.recovery_code_used': 'Recovery code used',
  'account.password_changed': 'Password changed',
  'account.password_reset': 'Password reset',
  'account.email_changed': 'Email changed',
  'account.oidc_linked': 'Issuer linked',
  'account.oidc_unlinked': 'Issuer unlinked',
  'account.avatar_changed': 'Avatar changed',
  'account.avatar_removed': 'Avatar removed',
  'account.deleted': 'Account deleted',
  'trusted_issuer.created': 'Issuer of keys trusted',
  'trusted_issuer.deleted': 'Issuer of keys no longer trusted',
  'api_key.created': 'API key created',
  'api_key.updated': 'API key changed',
  'api_key.revoked': 'API key revoked',
  'api_key.rotated': 'API key rotated',
  'api_key.exchanged': 'Token exchanged for an API key',
  'api_key.application_removed': 'Deleted application removed from an API key',
  'application.created': 'Application created',
  'application.setting_updated': 'Setting changed',
  'application.paused': 'Application paused',
  'application.resumed': 'Application resumed',
  'application.license_levels_replaced': 'License levels changed',
  'application.runtime_key_rotated': 'Runtime key rotated',
  'application.key_overlap_ended': 'Overlap of a runtime key ended',
  'application.release_settings_updated': 'Release settings changed',
  'application.deleted': 'Application deleted',
  'release.created': 'Release created',
  'release.updated': 'Release changed',
  'release.published': 'Release published',
  'release.rollout_changed': 'Roll-out changed',
  'release.yanked': 'Release yanked',
  'release.deleted': 'Release deleted',
  'file.uploaded': 'File uploaded',
  'file.replaced': 'File replaced',
  'file.renamed': 'File renamed',
  'file.deleted': 'File deleted',
  'audit_log.entries_left_out': 'Entries beyond the daily limit',
};

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
  ([name, , subjects]) => [name, Object.entries(NAMES).filter(([action]) => isOf(action, subjects))] as const,
);

/** Later releases may add actions: those show their code. */
export const nameAction = (action: string) => (Object.hasOwn(NAMES, action) && NAMES[action]) || action;

export const findIcon = (action: string) => GROUPS.find(([, , subjects]) => isOf(action, subjects))?.[1] ?? 'info';
