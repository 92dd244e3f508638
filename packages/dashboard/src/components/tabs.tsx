import type { ReactNode } from 'react';
import styles from './tabs.module.css';

/** Navigation between the pages of one thing, each with its own URL: links with {@link tabLink}. */
export function Tabs({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {children}
    </nav>
  );
}

/** Properties of a link that is a tab. */
export const tabLink = { className: styles.tab, activeProps: { 'aria-current': 'page' as const } };
