import { Link } from '@tanstack/react-router';
import type { ReactNode, Ref } from 'react';
import { Icon } from '../components/icon.tsx';
import iconUrl from '../icon.svg';
import { NAVIGATION } from './navigation.ts';
import styles from './shell.module.css';

interface FrameProps {
  readonly children: ReactNode;
  /** The search, above the navigation. */
  readonly find?: ReactNode;
  /** Below the navigation. */
  readonly account?: ReactNode;
  /** Above the page. */
  readonly notice?: ReactNode;
  readonly main?: Ref<HTMLElement>;
}

/** Navigation around a page. It needs no data: it stays while the service is away. */
export function Frame({ children, find, account, notice, main }: FrameProps) {
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#main">
        Skip to content
      </a>
      <header className={styles.side}>
        <Link to="/applications" className={`${styles.brand} line`}>
          <img src={iconUrl} width={26} height={26} alt="" /> Latchkey
        </Link>
        {find}
        <nav aria-label="Main">
          <ul>
            {NAVIGATION.map(({ to, label, icon }) => (
              <li key={to}>
                <Link to={to} className={`${styles.link} item`} activeProps={{ 'aria-current': 'page' }}>
                  <Icon name={icon} size={18} /> {label}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        {account}
      </header>
      <div>
        {notice}
        <main id="main" ref={main} tabIndex={-1} className={styles.main}>
          {children}
        </main>
      </div>
    </div>
  );
}
