import { useIsFetching, useQueryClient } from '@tanstack/react-query';
import { CatchBoundary, Outlet, useLocation, useMatches, useRouter } from '@tanstack/react-router';
import { type ReactNode, Suspense, useEffect, useRef, useState } from 'react';
import { followChanges } from '../api/follow-changes.ts';
import { preloadDialogs } from '../components/dialog.tsx';
import { Icon } from '../components/icon.tsx';
import { lazyComponent } from '../components/lazy-component.ts';
import { PageError } from '../routing/page-error.tsx';
import { SessionEndDialog } from '../session/session-end-dialog.tsx';
import { leave } from '../session/sign-out.ts';
import { useTabMessages } from '../session/tabs.ts';
import { AccountMenu } from './account-menu.tsx';
import { Frame } from './frame.tsx';
import { ServiceNotice } from './service-notice.tsx';
import styles from './shell.module.css';
import { useShortcuts } from './shortcuts.ts';

const Palette = lazyComponent(() => import('./palette.tsx'), 'Palette');
const UploadIndicator = lazyComponent(() => import('../pages/application/files/upload-indicator.tsx'), 'UploadIndicator');
const ShortcutsDialog = lazyComponent(() => import('./palette.tsx'), 'ShortcutsDialog');

/** Time without requests after which the page counts as idle, in milliseconds. */
const IDLE_MS = 1_500;

/** Frame of every page of an account. */
export function Shell(): ReactNode {
  const [open, setOpen] = useState<'palette' | 'shortcuts'>();
  useShortcuts(setOpen);
  const main = useFocusAfterNavigation();
  const matches = useMatches();
  const isIdle = usePreload();
  useTabMessages(leave);
  const queryClient = useQueryClient();
  useEffect(() => followChanges(queryClient), [queryClient]);
  const close = () => setOpen(undefined);
  return (
    <Frame
      main={main}
      notice={<ServiceNotice />}
      find={
        <button type="button" className={`${styles.find} item`} onClick={() => setOpen('palette')}>
          <Icon name="search" /> Find… <kbd>{isApple ? '⌘' : 'Ctrl'} K</kbd>
        </button>
      }
      account={
        <>
          <Suspense>{isIdle && <UploadIndicator />}</Suspense>
          <AccountMenu onShortcuts={() => setOpen('shortcuts')} />
        </>
      }
    >
      <CatchBoundary getResetKey={() => matches} errorComponent={PageError}>
        <Outlet />
      </CatchBoundary>
      <SessionEndDialog />
      <Suspense>
        {open === 'palette' && <Palette onClose={close} onShortcuts={() => setOpen('shortcuts')} />}
        {open === 'shortcuts' && <ShortcutsDialog onClose={close} />}
      </Suspense>
    </Frame>
  );
}

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

/**
 * Loads the other pages and dialogs once the first page is idle: they then open without the
 * service. Returns whether it was idle.
 */
function usePreload(): boolean {
  const [isIdle, setIdle] = useState(false);
  const { routesById } = useRouter();
  const isFetching = useIsFetching() > 0;
  useEffect(() => {
    if (isFetching) return;
    const timer = setTimeout(() => {
      const own = Object.values(routesById).filter(({ id }) => id.startsWith('/signed-in/'));
      const pages = own.map(({ options }) => options.component?.preload);
      for (const preload of [...pages, Palette.preload, preloadDialogs]) preload?.()?.catch(() => undefined);
      setIdle(true);
    }, IDLE_MS);
    return () => clearTimeout(timer);
  }, [isFetching, routesById]);
  return isIdle;
}

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
