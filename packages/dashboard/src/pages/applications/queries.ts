import { queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';

/** All applications of the account, oldest first, with their runtime keys. */
export const applicationsQuery = queryOptions({
  queryKey: ['applications'],
  queryFn: ({ signal }) => latchkey.applications.list({ signal }),
});
