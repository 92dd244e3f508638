import { queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';

/** All management API keys of the account, also revoked ones. */
export const apiKeysQuery = queryOptions({
  queryKey: ['api-keys'],
  queryFn: ({ signal }) => latchkey.apiKeys.list({ signal }),
});
