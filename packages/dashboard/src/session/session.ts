import { queryOptions, useQuery, useSuspenseQuery } from '@tanstack/react-query';
import { latchkey } from '../api/client.ts';

/** The session and its account; an error with the code `unauth` without one. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => latchkey.account.session({ signal }),
  staleTime: 60_000,
});

/** The account that is signed in. For pages below the signed-in route, which has loaded it. */
export const useAccount = () => useSuspenseQuery(sessionQuery).data.account;

export const limitsQuery = queryOptions({
  queryKey: ['limits'],
  queryFn: ({ signal }) => latchkey.limits.get({ signal }),
});

/** Usage and limits of the account; undefined until loaded. */
export const useLimits = () => useQuery(limitsQuery).data;

/** Options of sign-up, and the issuers to sign in at. */
export const signInMethodsQuery = queryOptions({
  queryKey: ['sign-in-methods'],
  queryFn: ({ signal }) => latchkey.account.signInMethods({ signal }),
  staleTime: Number.POSITIVE_INFINITY,
});
