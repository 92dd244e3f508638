import './styles/base.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { options } from 'preact';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/query-client.ts';
import { router } from './routing/routes.ts';
import { applyTheme } from './shell/theme.ts';

// Effects run before the next key of a person, as those of React: some move the focus.
options.requestAnimationFrame = queueMicrotask;

applyTheme();

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
  createRoot(document.getElementById('root') as HTMLElement).render(
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  ),
);
