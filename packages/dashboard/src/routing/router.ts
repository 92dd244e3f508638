import { createRouter } from '@tanstack/react-router';
import { queryClient } from '../api/query-client.ts';
import { basePath } from '../api/settings.ts';
import { accountRoute } from '../pages/account/route.ts';
import { apiKeysRoute } from '../pages/api-keys/route.ts';
import { filesRoute } from '../pages/application/files/route.ts';
import { applicationRoute, levelsRoute, liveRoute, overviewRoute, releasesRoute } from '../pages/application/route.ts';
import { applicationsRoute } from '../pages/applications/route.ts';
import { auditLogRoute } from '../pages/audit-log/route.ts';
import { confirmEmailRoute } from '../pages/confirm-email/route.ts';
import { resetPasswordRoute } from '../pages/reset-password/route.ts';
import { signInRoute } from '../pages/sign-in/route.ts';
import { signUpRoute } from '../pages/sign-up/route.ts';
import { trustedIssuersRoute } from '../pages/trusted-issuers/route.ts';
import { homeRoute, rootRoute, signedInRoute } from './routes.tsx';

export const router = createRouter({
  // Each page is one line here.
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
