import type { IconName } from '../components/icon.tsx';

interface NavigationItem {
  readonly to: '/applications' | '/api-keys' | '/audit-log' | '/account';
  readonly label: string;
  readonly icon: IconName;
  /** Pressed after `g`, it opens the page. */
  readonly key: string;
}

/** The pages of the navigation, the command palette and the shortcuts. */
export const NAVIGATION: readonly NavigationItem[] = [
  { to: '/applications', label: 'Applications', icon: 'applications', key: 'a' },
  { to: '/api-keys', label: 'API keys', icon: 'key', key: 'k' },
  { to: '/audit-log', label: 'Audit log', icon: 'log', key: 'l' },
  { to: '/account', label: 'Account', icon: 'account', key: 'u' },
];
