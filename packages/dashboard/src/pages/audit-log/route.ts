import { createRoute } from '@tanstack/react-router';
import { lazyComponent } from '../../components/lazy-component.ts';
import { signedInRoute } from '../../routing/routes.tsx';
import { readText } from '../../routing/search.ts';
import { apiKeysQuery } from '../api-keys/queries.ts';
import { applicationsQuery } from '../applications/queries.ts';
import { type AuditSearch, auditLogQuery } from './queries.ts';

export const auditLogRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/audit-log',
  validateSearch: ({ application, action, search }: Record<string, unknown>): AuditSearch => ({
    application: readText(application),
    action: readText(application) === undefined ? readText(action) : undefined,
    search: readText(search),
  }),
  loaderDeps: ({ search: { application, action } }) => ({ application, action }),
  loader: ({ context, deps }) => {
    void context.queryClient.prefetchInfiniteQuery(auditLogQuery(deps));
    void context.queryClient.prefetchQuery(applicationsQuery);
    void context.queryClient.prefetchQuery(apiKeysQuery);
  },
  component: lazyComponent(() => import('./view.tsx'), 'AuditLogPage'),
});
