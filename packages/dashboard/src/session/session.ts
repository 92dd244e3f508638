import { useQuery, useSuspenseQuery } from '@tanstack/react-query';
import { limitsQuery, sessionQuery } from '../api/queries.ts';

/** The account that is signed in. For pages below the signed-in route, which has loaded it. */
export const useAccount = () => useSuspenseQuery(sessionQuery).data.account;

/** "3 of 200 used.", or "3 used." where nothing limits it; empty until the limits are loaded. */
export const describeUsage = (
  limit: { readonly currentValue: number; readonly maxValue: number | null } | undefined,
  use: string,
) => (limit ? `${limit.currentValue}${limit.maxValue === null ? '' : ` of ${limit.maxValue}`} ${use}.` : '');

/** Undefined until loaded. */
export const useLimits = () => useQuery(limitsQuery).data;
