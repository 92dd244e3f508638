import { createRoute } from '@tanstack/react-router';
import { lazyComponent } from '../../components/lazy-component.ts';
import { signedInRoute } from '../../routing/routes.tsx';
import { readFlag, readText } from '../../routing/search.ts';
import { trustedIssuersQuery } from './queries.ts';

interface Search {
  /** True if the dialog to trust an issuer is open. */
  readonly create?: true | undefined;
  /** Id of the trusted issuer whose dialog is open. */
  readonly issuer?: string | undefined;
}

export const trustedIssuersRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/api-keys/trusted-issuers',
  validateSearch: ({ create, issuer }: Record<string, unknown>): Search => ({
    create: readFlag(create),
    issuer: readText(issuer),
  }),
  loader: ({ context }) => void context.queryClient.prefetchQuery(trustedIssuersQuery),
  component: lazyComponent(() => import('./view.tsx'), 'TrustedIssuersPage'),
});
