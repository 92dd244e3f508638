import { APPLICATION_SORTS, withDescending } from '@latchkey/contract/list-order';
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';

/** All applications of the account, oldest first, with their runtime keys. */
export const applicationsQuery = queryOptions({
  queryKey: ['applications'],
  queryFn: ({ signal }) => latchkey.applications.list({ signal }),
});

/** The pages of the list; a part of the key of all applications. */
export const LIST_KEY = [...applicationsQuery.queryKey, 'list'];

export const ORDERS = withDescending(APPLICATION_SORTS);
export type Sort = (typeof ORDERS)[number];

/** Parameters of the list in the URL. */
export interface ListSearch {
  /** Counts from 1. */
  readonly page?: number | undefined;
  readonly search?: string | undefined;
  readonly sort?: Sort | undefined;
}

/** A page of the applications with status, version, files and storage. */
export const applicationListQuery = ({ page = 1, search, sort = 'name' }: ListSearch) =>
  queryOptions({
    queryKey: [...LIST_KEY, { page, search, sort }],
    queryFn: ({ signal }) => latchkey.applications.page({ page, search, sort, signal }),
    placeholderData: keepPreviousData,
  });
