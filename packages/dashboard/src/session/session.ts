import { useQuery, useSuspenseQuery } from '@tanstack/react-query';
import { limitsQuery, sessionQuery } from '../api/queries.ts';

/** The account that is signed in. For pages below the signed-in route, which has loaded it. */
export const useAccount = () => useSuspenseQuery(sessionQuery).data.account;

/** Usage and limits of the account; undefined until loaded. */
export const useLimits = () => useQuery(limitsQuery).data;
