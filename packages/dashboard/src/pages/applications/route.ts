import { createRoute } from '@tanstack/react-router';
import { signedInRoute } from '../../routing/routes.tsx';
import { readFlag, readText } from '../../routing/search.ts';
import { applicationsQuery } from './queries.ts';
import { ApplicationsPage } from './view.tsx';

interface Search {
  readonly search?: string | undefined;
  /** True if the dialog to create one is open. */
  readonly create?: true | undefined;
}

export const applicationsRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/applications',
  validateSearch: ({ search, create }: Record<string, unknown>): Search => ({
    search: readText(search),
    create: readFlag(create),
  }),
  loader: ({ context }) => void context.queryClient.prefetchQuery(applicationsQuery),
  component: ApplicationsPage,
});
