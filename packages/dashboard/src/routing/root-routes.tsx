import { LatchkeyError } from '@latchkey/client';
import type { QueryClient } from '@tanstack/react-query';
import { createRootRouteWithContext, createRoute, type ErrorComponentProps, Outlet, redirect } from '@tanstack/react-router';
import { type ReactNode, Suspense } from 'react';
import { sessionQuery } from '../api/queries.ts';
import { hadSessionCookie } from '../api/settings.ts';
import { lazyComponent } from '../components/lazy-component.ts';
import { Title } from '../components/page.tsx';
import { NotFound } from '../components/states.tsx';
import { Frame } from '../shell/frame.tsx';
import { Shell } from '../shell/shell.tsx';
import { firstToast } from '../toast/toasts.ts';
import { PageError } from './page-error.tsx';
import styles from './root-routes.module.css';

const ToastRegion = lazyComponent(async () => {
  await firstToast;
  return import('../toast/toast-region.tsx');
}, 'ToastRegion');

/** The parent of pages for everyone. */
export const rootRoute = createRootRouteWithContext<{ readonly queryClient: QueryClient }>()({
  component: Root,
  errorComponent: RootError,
  notFoundComponent: NoPage,
});

export const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/applications', replace: true });
  },
});

/** The parent of pages for accounts: loads the session, or leads to the sign-in and back. */
export const signedInRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'signed-in',
  beforeLoad: async ({ context, location }) => {
    if (await hasSession(context.queryClient)) return;
    throw redirect({ to: '/sign-in', search: location.href === '/applications' ? {} : { returnTo: location.href } });
  },
  component: Shell,
  errorComponent: FrameError,
  notFoundComponent: NoPage,
});

/** @throws LatchkeyError while the service cannot say */
export async function hasSession(queryClient: QueryClient): Promise<boolean> {
  if (!hadSessionCookie && queryClient.getQueryData(sessionQuery.queryKey) === undefined) return false;
  try {
    await queryClient.ensureQueryData({ ...sessionQuery, meta: { opensSignIn: false } });
    return true;
  } catch (error) {
    if (error instanceof LatchkeyError && error.status === 401) return false;
    throw error;
  }
}

/** Toasts outlive the page that they came from. */
function Root() {
  return (
    <>
      <Outlet />
      <Suspense>
        <ToastRegion />
      </Suspense>
    </>
  );
}

function RootError({ error }: ErrorComponentProps): ReactNode {
  return (
    <main className={styles.page}>
      <PageError error={error} />
    </main>
  );
}

/** The session could not be read: its pages cannot be shown, but their frame can. */
function FrameError({ error }: ErrorComponentProps): ReactNode {
  return (
    <Frame>
      <PageError error={error} />
    </Frame>
  );
}

function NoPage() {
  return (
    <main className={styles.page}>
      <Title>Not found</Title>
      <NotFound title="There is no such page">The address may be mistyped, or the page was moved.</NotFound>
    </main>
  );
}
