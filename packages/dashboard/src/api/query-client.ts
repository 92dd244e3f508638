import { LatchkeyError } from '@latchkey/client';
import { MutationCache, notifyManager, QueryCache, QueryClient } from '@tanstack/react-query';
import { isTemporary } from '../error/explain-error.ts';
import { reportSessionEnd } from '../session/session-end.ts';

/** A view then shows the error, and tries again. */
const READ_RETRIES = 1;

/** A call without a session opens the sign-in dialog over the page, which keeps its inputs. */
function onError(error: Error): void {
  if (error instanceof LatchkeyError && error.status === 401) reportSessionEnd();
}

// Later, by default: a second press of a button would come before the button is pending.
notifyManager.setScheduler(queueMicrotask);

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (error, query) => query.meta?.opensSignIn !== false && onError(error) }),
  mutationCache: new MutationCache({
    onError: (error, _variables, _result, mutation) => mutation.meta?.opensSignIn !== false && onError(error),
  }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < READ_RETRIES && isTemporary(error) && error.status !== 429,
    },
    // Passwords, codes and keys do not stay in the cache.
    mutations: { retry: false, networkMode: 'always', gcTime: 0 },
  },
});
