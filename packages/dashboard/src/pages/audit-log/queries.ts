import { infiniteQueryOptions } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';

/**
 * Filter of entries: all, those of an application, or those of an action. Not both: the
 * interface has one.
 */
export interface Filter {
  readonly application?: string | undefined;
  readonly action?: string | undefined;
}

/** Search of the page: of the entries that are shown. */
export interface AuditSearch extends Filter {
  readonly search?: string | undefined;
}

export const toQuery = ({ application, action }: Filter) => ({
  ...(application !== undefined && { applicationId: application }),
  ...(application === undefined && action !== undefined && { action }),
});

/** Pages of the audit log, newest first. */
export const auditLogQuery = (filter: Filter) =>
  infiniteQueryOptions({
    queryKey: ['audit-log', toQuery(filter)],
    queryFn: ({ pageParam, signal }) =>
      latchkey.auditLog.list({ ...toQuery(filter), ...(pageParam !== null && { cursor: pageParam }), signal }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
