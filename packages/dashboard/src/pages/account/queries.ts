import { queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';

/** The sessions of the account that have not ended: this one, then those used last. */
export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: ({ signal }) => latchkey.account.sessions({ signal }),
});

/** The issuers that can sign in to the account. */
export const linksQuery = queryOptions({
  queryKey: ['oidc-links'],
  queryFn: ({ signal }) => latchkey.oidc.links({ signal }),
});
