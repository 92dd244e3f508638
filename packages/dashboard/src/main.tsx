import './styles/base.css';
import { CSPProvider } from '@base-ui/react/csp-provider';
import { LatchkeyError } from '@latchkey/client';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/query-client.ts';
import { router } from './routing/router.ts';
import { applyTheme } from './shell/theme.ts';

applyTheme();

/** Errors of the service are on the page: the console shows those of the dashboard. */
const onCaughtError = (error: unknown) => error instanceof LatchkeyError || reportError(error);

// The session may have ended since the browser put the page into its back/forward cache.
addEventListener('pageshow', ({ persisted }) => {
  if (!persisted) return;
  // A reload may take long, and until then the page would be usable.
  document.body.hidden = true;
  location.reload();
});
// The page stays as it is painted until there is another one. No top-level await: a page's script
// imports from this one, so each would wait for the other.
void router.load().then(() =>
  createRoot(document.getElementById('root') as HTMLElement, { onCaughtError }).render(
    <StrictMode>
      {/* The Content-Security-Policy allows no style elements. */}
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  ),
);
