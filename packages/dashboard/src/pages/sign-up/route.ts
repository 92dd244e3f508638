import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from '../../routes.tsx';
import { readReturnTo } from '../../search.ts';

export const signUpRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-up',
  validateSearch: ({ returnTo }: Record<string, unknown>): { readonly returnTo?: string | undefined } => ({
    returnTo: readReturnTo(returnTo),
  }),
  component: lazyRouteComponent(() => import('./view.tsx'), 'SignUpPage'),
});
