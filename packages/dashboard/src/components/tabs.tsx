import { useRouterState } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';
import styles from './tabs.module.css';

/** Navigation between the pages of one thing, each with its own URL: links with {@link tabLink}. */
export function Tabs({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  const nav = useRef<HTMLElement>(null);
  const pathname = useRouterState({ select: ({ resolvedLocation }) => resolvedLocation?.pathname });
  // On narrow screens, the current tab may be beyond the edge.
  useEffect(() => {
    if (pathname) nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [pathname]);
  return (
    <nav ref={nav} className={styles.tabs} aria-label={label}>
      {children}
    </nav>
  );
}

export const tabLink = { className: styles.tab, activeProps: { 'aria-current': 'page' as const } };
