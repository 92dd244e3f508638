import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from '../../routing/routes.tsx';
import { readReturnTo } from '../../routing/search.ts';

export const signUpRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-up',
  validateSearch: ({ returnTo }: Record<string, unknown>): { readonly returnTo?: string | undefined } => ({
    returnTo: readReturnTo(returnTo),
  }),
  component: lazyRouteComponent(() => import('./view.tsx'), 'SignUpPage'),
});
