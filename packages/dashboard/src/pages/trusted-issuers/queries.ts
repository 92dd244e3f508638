import { queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';

/** All trusted issuers of the account. */
export const trustedIssuersQuery = queryOptions({
  queryKey: ['trusted-issuers'],
  queryFn: ({ signal }) => latchkey.trustedIssuers.list({ signal }),
});
