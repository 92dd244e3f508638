import { keepPreviousData, type QueryClient, queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../../api/client.ts';
import { limitsQuery } from '../../../session/session.ts';
import { LIST_KEY } from '../../applications/queries.ts';
import { filesMetadataQuery } from '../queries.ts';

/** A page of the files of an application, newest first. */
export const filesQuery = (applicationId: string, page: number, search: string) =>
  queryOptions({
    queryKey: ['files', applicationId, { page, search }],
    queryFn: ({ signal }) => latchkey.files.list(applicationId, { page, search, signal }),
    // The table of one application stays while its next page loads.
    placeholderData: (previous, query) => (query?.queryKey[1] === applicationId ? keepPreviousData(previous) : undefined),
  });

export const UNFINISHED_KEY = ['unfinished-uploads'];

/**
 * The unfinished uploads of an application.
 * @param running number of those of this page, which change it
 */
export const unfinishedQuery = (applicationId: string, running: number) =>
  queryOptions({
    queryKey: [...UNFINISHED_KEY, applicationId, running],
    queryFn: async ({ signal }) =>
      (await latchkey.uploads.list({ signal })).filter((upload) => upload.applicationId === applicationId),
    placeholderData: (previous, query) => (query?.queryKey[1] === applicationId ? keepPreviousData(previous) : undefined),
  });

export const nameQuery = (applicationId: string, name: string) =>
  queryOptions({
    queryKey: ['file-name', applicationId, name],
    queryFn: ({ signal }) => latchkey.files.isNameFree(applicationId, name, { signal }),
    gcTime: 0,
  });

/** Loads anew what a change of the files of an application changes. */
export async function invalidateFiles(queryClient: QueryClient, applicationId: string): Promise<void> {
  await Promise.all(
    [
      ['files', applicationId],
      filesMetadataQuery(applicationId).queryKey,
      limitsQuery.queryKey,
      LIST_KEY,
      ['file-name', applicationId],
    ].map((queryKey) => queryClient.invalidateQueries({ queryKey })),
  );
}
