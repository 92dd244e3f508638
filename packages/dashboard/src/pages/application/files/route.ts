import { createRoute } from '@tanstack/react-router';
import { lazyComponent } from '../../../components/lazy-component.ts';
import { readPage, readText } from '../../../routing/search.ts';
import { applicationRoute } from '../route.ts';
import { filesQuery } from './queries.ts';

interface Search {
  /** Counts from 1. */
  readonly page?: number | undefined;
  readonly search?: string | undefined;
}

export const filesRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: '/files',
  validateSearch: ({ page, search }: Record<string, unknown>): Search => ({
    page: readPage(page),
    search: readText(search),
  }),
  loaderDeps: ({ search }) => search,
  loader: ({ context, params: { applicationId }, deps: { page = 1, search = '' } }) =>
    void context.queryClient.prefetchQuery(filesQuery(applicationId, page, search)),
  component: lazyComponent(() => import('./view.tsx'), 'FilesPage'),
});
