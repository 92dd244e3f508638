import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { signedInRoute } from '../../routing/routes.tsx';
import { limitsQuery } from '../../session/session.ts';
import { linksQuery, sessionsQuery } from './queries.ts';

export const accountRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/account',
  loader: ({ context }) => {
    void context.queryClient.prefetchQuery(limitsQuery);
    void context.queryClient.prefetchQuery(sessionsQuery);
    void context.queryClient.prefetchQuery(linksQuery);
  },
  component: lazyRouteComponent(() => import('./view.tsx'), 'AccountPage'),
});
