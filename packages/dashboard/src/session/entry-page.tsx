import { useRouterState } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Title } from '../components/page.tsx';
import iconUrl from '../icon.svg';
import styles from './entry-page.module.css';

interface EntryPageProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly footer?: ReactNode;
}

/** The frame of the pages without a session. */
export function EntryPage({ title, children, footer }: EntryPageProps) {
  return (
    <main className={styles.page}>
      <Title>{title}</Title>
      <p className={`${styles.brand} line`}>
        <img src={iconUrl} width={32} height={32} alt="" /> Latchkey
      </p>
      <div className={`${styles.card} stack raised`}>
        <h1>{title}</h1>
        {children}
      </div>
      {footer && <p className={`${styles.footer} muted`}>{footer}</p>}
    </main>
  );
}

/**
 * The token of a mailed link. It is in the fragment, which browsers send to no server, and which
 * alone changes when the link is opened in the tab that asked for it. It stays until the next page
 * is loaded.
 */
export function useMailedToken(): string | undefined {
  const { hash } = useRouterState({ select: ({ location, resolvedLocation = location }) => resolvedLocation });
  return new URLSearchParams(hash).get('token') ?? undefined;
}
