import type { IconName } from '../components/icon.tsx';
import type { router } from '../router.ts';

interface NavigationItem {
  readonly to: Exclude<keyof (typeof router)['routesByPath'], `${string}/` | `${string}$${string}`>;
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
