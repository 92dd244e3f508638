import { createRoute } from '@tanstack/react-router';
import { lazyComponent } from '../../components/lazy-component.ts';
import { signedInRoute } from '../../routing/routes.tsx';
import { readText } from '../../routing/search.ts';
import { applicationsQuery } from '../applications/queries.ts';
import { levelsQuery, settingsQuery } from './queries.ts';

/** The parent of the pages of one application: its header and its tabs. */
export const applicationRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/applications/$applicationId',
  loader: ({ context, params: { applicationId } }) => {
    void context.queryClient.prefetchQuery(applicationsQuery);
    void context.queryClient.prefetchQuery(settingsQuery(applicationId));
  },
  component: lazyComponent(() => import('./view.tsx'), 'ApplicationPage'),
});

export const overviewRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: '/',
  component: lazyComponent(() => import('./overview.tsx'), 'Overview'),
});

export const levelsRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: 'levels',
  loader: ({ context, params }) => void context.queryClient.prefetchQuery(levelsQuery(params.applicationId)),
  component: lazyComponent(() => import('./levels/view.tsx'), 'Levels'),
});

export const releasesRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: 'releases',
  validateSearch: ({ release }: Record<string, unknown>): { readonly release?: string | undefined } => ({
    release: readText(release),
  }),
  component: lazyComponent(() => import('./releases/view.tsx'), 'ReleasesPage'),
});

export const liveRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: 'live',
  component: lazyComponent(() => import('./live/view.tsx'), 'Live'),
});
