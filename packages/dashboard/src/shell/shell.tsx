import { Link, Outlet, useLocation } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { preloadDialogs } from '../components/dialog.tsx';
import { Icon } from '../components/icon.tsx';
import iconUrl from '../icon.svg';
import { SessionEndDialog } from '../session/session-end-dialog.tsx';
import { AccountMenu } from './account-menu.tsx';
import { NAVIGATION } from './navigation.ts';
import { OfflineNotice } from './offline-notice.tsx';
import styles from './shell.module.css';
import { useShortcuts } from './shortcuts.ts';

const importPalette = () => import('./palette.tsx');
const Palette = lazy(() => importPalette().then(({ Palette }) => ({ default: Palette })));
const ShortcutsDialog = lazy(() =>
  import('./shortcuts-dialog.tsx').then(({ ShortcutsDialog }) => ({ default: ShortcutsDialog })),
);

/** Frame of every page of an account. */
export function Shell() {
  const [open, setOpen] = useState<'palette' | 'shortcuts'>();
  useShortcuts(setOpen);
  const main = useFocusAfterNavigation();
  useEffect(() => {
    preloadDialogs();
    void importPalette().catch(() => undefined);
  }, []);
  const close = () => setOpen(undefined);
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#main">
        Skip to content
      </a>
      <header className={styles.side}>
        <Link to="/applications" className={styles.brand}>
          <img src={iconUrl} width={26} height={26} alt="" /> Latchkey
        </Link>
        <button type="button" className={styles.find} onClick={() => setOpen('palette')}>
          <Icon name="search" /> Find… <kbd>{isApple ? '⌘' : 'Ctrl'} K</kbd>
        </button>
        <nav aria-label="Main">
          <ul>
            {NAVIGATION.map(({ to, label, icon }) => (
              <li key={to}>
                <Link to={to} className={styles.link} activeProps={{ 'aria-current': 'page' }}>
                  <Icon name={icon} size={18} /> {label}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <AccountMenu onShortcuts={() => setOpen('shortcuts')} />
      </header>
      <div>
        <OfflineNotice />
        <main id="main" ref={main} tabIndex={-1} className={styles.main}>
          <Outlet />
        </main>
      </div>
      <SessionEndDialog />
      <Suspense>
        {open === 'palette' && <Palette onClose={close} onShortcuts={() => setOpen('shortcuts')} />}
        {open === 'shortcuts' && <ShortcutsDialog onClose={close} />}
      </Suspense>
    </div>
  );
}

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Moves the focus to the new page, which screen readers then read; not on the first page. */
function useFocusAfterNavigation() {
  const main = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  const focused = useRef(pathname);
  useEffect(() => {
    if (focused.current === pathname) return;
    focused.current = pathname;
    main.current?.focus({ preventScroll: true });
  }, [pathname]);
  return main;
}
