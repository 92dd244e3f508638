import { LatchkeyError } from '@latchkey/client';
import { type Mutation, MutationCache, notifyManager, QueryCache, QueryClient } from '@tanstack/react-query';
import { isTemporary } from '../error/explain-error.ts';
import { isLeavingForSignIn, reportSessionEnd } from '../session/session-end.ts';
import { isCount } from './queries.ts';

/** A view then shows the error, and tries again. */
const READ_RETRIES = 1;

/** Statuses of changes that the service rejects because of others that the page does not show. */
const OUTDATED = [404, 409, 412];

/** A call without a session opens the sign-in dialog over the page, which keeps its inputs. */
function onError(error: Error): void {
  if (error instanceof LatchkeyError && error.status === 401) reportSessionEnd();
}

/** Entry pages call without a session, and show nothing that a change makes old. */
const isOfSession = ({ meta }: Pick<Mutation, 'meta'>) => meta?.opensSignIn !== false && !isLeavingForSignIn();

/** Reads again what the page shows, save counts. */
const readAgain = () => queryClient.invalidateQueries({ predicate: (query) => !isCount(query) });

// Later, by default: a second press of a button would come before the button is pending.
notifyManager.setScheduler(queueMicrotask);

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (error, query) => query.meta?.opensSignIn !== false && onError(error) }),
  // A change ends when the page shows it.
  mutationCache: new MutationCache({
    onSuccess: (_data, _variables, _result, mutation) => (isOfSession(mutation) ? readAgain() : undefined),
    onError: (error, _variables, _result, mutation) => {
      if (!isOfSession(mutation)) return;
      onError(error);
      return error instanceof LatchkeyError && OUTDATED.includes(error.status) ? readAgain() : undefined;
    },
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
