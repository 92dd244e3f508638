import { createRoute } from '@tanstack/react-router';
import { lazyComponent } from '../../components/lazy-component.ts';
import { rootRoute } from '../../routing/routes.tsx';
import { readReturnTo } from '../../routing/search.ts';

export const signUpRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-up',
  validateSearch: ({ returnTo }: Record<string, unknown>): { readonly returnTo?: string | undefined } => ({
    returnTo: readReturnTo(returnTo),
  }),
  component: lazyComponent(() => import('./view.tsx'), 'SignUpPage'),
});
