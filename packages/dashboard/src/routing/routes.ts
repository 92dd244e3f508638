import type { FetchQueryOptions, QueryClient } from '@tanstack/react-query';
import { createRoute, createRouter, redirect } from '@tanstack/react-router';
import * as queries from '../api/queries.ts';
import { queryClient } from '../api/query-client.ts';
import { basePath } from '../api/settings.ts';
import { lazyComponent } from '../components/lazy-component.ts';
import { ApplicationsPage } from '../pages/applications/view.tsx';
import { takeReturnTo } from '../session/return-to.ts';
import { hasSession, homeRoute, rootRoute, signedInRoute } from './root-routes.tsx';
import { readFlag, readPage, readReturnTo, readSearch, readText } from './search.ts';

/** Begins reads, for which the page waits where it needs them. */
function prefetch(client: QueryClient, ...reads: ReadonlyArray<{ readonly queryKey: readonly unknown[] }>): void {
  for (const read of reads) void client.prefetchQuery(read as FetchQueryOptions);
}

/** Search parameters of pages. Outside the routes, where TypeScript would not infer their types. */
const searches = {
  // The page that asked for the sign-in, and the code of an error of one by OpenID Connect.
  signIn: readSearch({ returnTo: readReturnTo, error: readText }),
  signUp: readSearch({ returnTo: readReturnTo }),
  // With `create`, the dialog to create one is open.
  applications: readSearch({ search: readText, create: readFlag, page: readPage, sort: queries.readSort }),
  files: readSearch({ page: readPage, search: readText }),
  // The id of the release whose dialog is open.
  releases: readSearch({ release: readText }),
  // With `all`, revoked and expired keys are listed too. `key` is the one whose dialog is open.
  apiKeys: readSearch({ all: readFlag, create: readFlag, key: readText }),
  trustedIssuers: readSearch({ create: readFlag, issuer: readText }),
  auditLog: readSearch({ application: readText, action: readText, search: readText }),
};

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-in',
  validateSearch: searches.signIn,
  beforeLoad: async ({ context, search }) => {
    if (search.error === undefined && (await hasSession(context.queryClient).catch(() => false))) {
      throw redirect({ href: readReturnTo(search.returnTo) ?? takeReturnTo() ?? '/applications', replace: true });
    }
  },
  loader: ({ context }) => prefetch(context.queryClient, queries.signInMethodsQuery),
  component: lazyComponent(() => import('../pages/sign-in/view.tsx'), 'SignInPage'),
});

const signUpRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-up',
  validateSearch: searches.signUp,
  component: lazyComponent(() => import('../pages/sign-up/view.tsx'), 'SignUpPage'),
});

const resetPasswordRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/reset-password',
  component: lazyComponent(() => import('../pages/reset-password/view.tsx'), 'ResetPasswordPage'),
});

const confirmEmailRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/confirm-email',
  component: lazyComponent(() => import('../pages/confirm-email/view.tsx'), 'ConfirmEmailPage'),
});

const applicationsRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/applications',
  validateSearch: searches.applications,
  loaderDeps: ({ search: { page, search, sort } }) => ({ page, search, sort }),
  loader: ({ context, deps }) => prefetch(context.queryClient, queries.applicationListQuery(deps), queries.limitsQuery),
  component: ApplicationsPage,
});

/** The parent of the pages of one application: its header and its tabs. */
const applicationRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/applications/$applicationId',
  loader: ({ context, params }) =>
    prefetch(context.queryClient, queries.applicationsQuery, queries.settingsQuery(params.applicationId)),
  component: lazyComponent(() => import('../pages/application/view.tsx'), 'ApplicationPage'),
});

const overviewRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: '/',
  component: lazyComponent(() => import('../pages/application/overview.tsx'), 'Overview'),
});

const levelsRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: 'levels',
  loader: ({ context, params }) => prefetch(context.queryClient, queries.levelsQuery(params.applicationId)),
  component: lazyComponent(() => import('../pages/application/levels/view.tsx'), 'Levels'),
});

const filesRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: '/files',
  validateSearch: searches.files,
  loaderDeps: ({ search }) => search,
  loader: ({ context, params: { applicationId }, deps: { page = 1, search = '' } }) =>
    prefetch(context.queryClient, queries.filesQuery(applicationId, page, search)),
  component: lazyComponent(() => import('../pages/application/files/view.tsx'), 'FilesPage'),
});

const releasesRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: 'releases',
  validateSearch: searches.releases,
  component: lazyComponent(() => import('../pages/application/releases/view.tsx'), 'ReleasesPage'),
});

const liveRoute = createRoute({
  getParentRoute: () => applicationRoute,
  path: 'live',
  component: lazyComponent(() => import('../pages/application/live/view.tsx'), 'Live'),
});

const apiKeysRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/api-keys',
  validateSearch: searches.apiKeys,
  loader: ({ context }) => prefetch(context.queryClient, queries.apiKeysQuery, queries.applicationsQuery),
  component: lazyComponent(() => import('../pages/api-keys/view.tsx'), 'ApiKeysPage'),
});

const trustedIssuersRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/api-keys/trusted-issuers',
  validateSearch: searches.trustedIssuers,
  loader: ({ context }) => prefetch(context.queryClient, queries.trustedIssuersQuery),
  component: lazyComponent(() => import('../pages/trusted-issuers/view.tsx'), 'TrustedIssuersPage'),
});

const auditLogRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/audit-log',
  validateSearch: searches.auditLog,
  loaderDeps: ({ search: { application, action } }) => ({ application, action }),
  loader: ({ context, deps }) => {
    void context.queryClient.prefetchInfiniteQuery(queries.auditLogQuery(deps));
    prefetch(context.queryClient, queries.applicationsQuery, queries.apiKeysQuery);
  },
  component: lazyComponent(() => import('../pages/audit-log/view.tsx'), 'AuditLogPage'),
});

const accountRoute = createRoute({
  getParentRoute: () => signedInRoute,
  path: '/account',
  loader: ({ context }) => prefetch(context.queryClient, queries.limitsQuery, queries.sessionsQuery, queries.linksQuery),
  component: lazyComponent(() => import('../pages/account/view.tsx'), 'AccountPage'),
});

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    homeRoute,
    signInRoute,
    signUpRoute,
    resetPasswordRoute,
    confirmEmailRoute,
    signedInRoute.addChildren([
      applicationsRoute,
      applicationRoute.addChildren([overviewRoute, levelsRoute, filesRoute, releasesRoute, liveRoute]),
      apiKeysRoute,
      trustedIssuersRoute,
      auditLogRoute,
      accountRoute,
    ]),
  ]),
  basepath: basePath,
  context: { queryClient },
  defaultPreload: 'intent',
  // Queries decide what is stale.
  defaultPreloadStaleTime: 0,
  scrollRestoration: true,
  search: { strict: true },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
