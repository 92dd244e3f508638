import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { signedInRoute } from '../../routes.tsx';
import { applicationsQuery } from './queries.ts';

interface Search {
  readonly search?: string;
  /** Whether the dialog to create one is open. */
  readonly create?: true;
}

export const applicationsRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/applications',
  validateSearch: ({ search, create }: Record<string, unknown>): Search => ({
    ...(typeof search === 'string' && search !== '' && { search }),
    ...(create === true && { create }),
  }),
  loader: ({ context }) => void context.queryClient.prefetchQuery(applicationsQuery),
  component: lazyRouteComponent(() => import('./view.tsx'), 'ApplicationsPage'),
});
