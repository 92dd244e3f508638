import { createRoute } from '@tanstack/react-router';
import { lazyComponent } from '../../components/lazy-component.ts';
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
  component: lazyComponent(() => import('./view.tsx'), 'AccountPage'),
});
