import { createRoute } from '@tanstack/react-router';
import { signedInRoute } from '../../routing/routes.tsx';
import { readFlag, readPage, readText } from '../../routing/search.ts';
import { limitsQuery } from '../../session/session.ts';
import { applicationListQuery, type ListSearch, ORDERS } from './queries.ts';
import { ApplicationsPage } from './view.tsx';

interface Search extends ListSearch {
  /** True if the dialog to create one is open. */
  readonly create?: true | undefined;
}

export const applicationsRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/applications',
  validateSearch: ({ search, create, page, sort }: Record<string, unknown>): Search => ({
    search: readText(search),
    create: readFlag(create),
    page: readPage(page),
    sort: ORDERS.find((order) => order === sort),
  }),
  loaderDeps: ({ search: { page, search, sort } }) => ({ page, search, sort }),
  loader: ({ context, deps }) => {
    void context.queryClient.prefetchQuery(applicationListQuery(deps));
    void context.queryClient.prefetchQuery(limitsQuery);
  },
  component: ApplicationsPage,
});
