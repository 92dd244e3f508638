import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { applicationRoute } from '../application/route.ts';
import { filesQuery } from './queries.ts';

interface Search {
  /** Counts from 1. */
  readonly page?: number;
  readonly search?: string;
}

export const filesRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: '/files',
  validateSearch: ({ page, search }: Record<string, unknown>): Search => ({
    ...(Number.isSafeInteger(page) && (page as number) > 1 && { page: page as number }),
    ...(typeof search === 'string' && search !== '' && { search }),
  }),
  loaderDeps: ({ search }) => search,
  loader: ({ context, params: { applicationId }, deps: { page = 1, search = '' } }) =>
    void context.queryClient.prefetchQuery(filesQuery(applicationId, page, search)),
  component: lazyRouteComponent(() => import('./view.tsx'), 'FilesPage'),
});
