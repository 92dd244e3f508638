import { queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';

/** Requests of a key in 90 days. */
export const requestsQuery = (apiKeyId: string) =>
  queryOptions({
    queryKey: ['api-keys', apiKeyId, 'requests'],
    queryFn: ({ signal }) => latchkey.apiKeys.requests(apiKeyId, { signal }),
    // The chart appears after the form each time, whose first input so gets the focus.
    gcTime: 0,
  });

/** A key with its entity tag; read anew for each form. */
export const apiKeyQuery = (id: string) =>
  queryOptions({
    queryKey: [...apiKeysQuery.queryKey, id],
    queryFn: ({ signal }) => latchkey.apiKeys.read(id, { signal }),
    gcTime: 0,
  });

/** All management API keys of the account, also revoked ones. */
export const apiKeysQuery = queryOptions({
  queryKey: ['api-keys'],
  queryFn: ({ signal }) => latchkey.apiKeys.list({ signal }),
});
