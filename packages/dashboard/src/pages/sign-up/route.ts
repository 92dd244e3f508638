import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from '../../routes.tsx';
import { readReturnTo } from '../../session/return-to.ts';

export const signUpRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-up',
  validateSearch: ({ returnTo }: Record<string, unknown>): { readonly returnTo?: string } => {
    const path = readReturnTo(returnTo);
    return path === undefined ? {} : { returnTo: path };
  },
  component: lazyRouteComponent(() => import('./view.tsx'), 'SignUpPage'),
});
