import { createRoute } from '@tanstack/react-router';
import { lazyComponent } from '../../components/lazy-component.ts';
import { signedInRoute } from '../../routing/routes.tsx';
import { readFlag, readText } from '../../routing/search.ts';
import { applicationsQuery } from '../applications/queries.ts';
import { apiKeysQuery } from './queries.ts';

interface Search {
  /** True if revoked and expired keys are listed too. */
  readonly all?: true | undefined;
  /** True if the dialog to create a key is open. */
  readonly create?: true | undefined;
  /** Id of the key whose dialog is open. */
  readonly key?: string | undefined;
}

export const apiKeysRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/api-keys',
  validateSearch: ({ all, create, key }: Record<string, unknown>): Search => ({
    all: readFlag(all),
    create: readFlag(create),
    key: readText(key),
  }),
  loader: ({ context }) => {
    void context.queryClient.prefetchQuery(apiKeysQuery);
    void context.queryClient.prefetchQuery(applicationsQuery);
  },
  component: lazyComponent(() => import('./view.tsx'), 'ApiKeysPage'),
});
