/**
 * The pages of the navigation, the command palette and the shortcuts: `key`, pressed after `g`,
 * opens one.
 */
export const NAVIGATION = [
  { to: '/applications', label: 'Applications', icon: 'applications', key: 'a' },
  { to: '/api-keys', label: 'API keys', icon: 'key', key: 'k' },
  { to: '/audit-log', label: 'Audit log', icon: 'log', key: 'l' },
  { to: '/account', label: 'Account', icon: 'account', key: 'u' },
] as const;
