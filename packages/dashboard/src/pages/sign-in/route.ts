import { createRoute, redirect } from '@tanstack/react-router';
import { lazyComponent } from '../../components/lazy-component.ts';
import { hasSession, rootRoute } from '../../routing/routes.tsx';
import { readReturnTo, readText } from '../../routing/search.ts';
import { takeReturnTo } from '../../session/return-to.ts';
import { signInMethodsQuery } from '../../session/session.ts';

interface Search {
  /** Path of the page that asked for the sign-in. */
  readonly returnTo?: string | undefined;
  /** Code of an error of a sign-in by OpenID Connect. */
  readonly error?: string | undefined;
}

export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-in',
  validateSearch: ({ returnTo, error }: Record<string, unknown>): Search => ({
    returnTo: readReturnTo(returnTo),
    error: readText(error),
  }),
  beforeLoad: async ({ context, search }) => {
    if (search.error === undefined && (await hasSession(context.queryClient).catch(() => false))) {
      throw redirect({ href: readReturnTo(search.returnTo) ?? takeReturnTo() ?? '/applications', replace: true });
    }
  },
  loader: ({ context }) => void context.queryClient.prefetchQuery(signInMethodsQuery),
  component: lazyComponent(() => import('./view.tsx'), 'SignInPage'),
});
