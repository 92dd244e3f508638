import { queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../api.ts';
import { applicationsQuery } from '../applications/queries.ts';

/** One of the applications; the interface has no route for one alone. Undefined if it does not exist. */
export const applicationQuery = (applicationId: string) => ({
  ...applicationsQuery,
  select: (applications: Awaited<ReturnType<typeof latchkey.applications.list>>) =>
    applications.find(({ id }) => id === applicationId) ?? null,
});

export const settingsQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['settings', applicationId],
    queryFn: ({ signal }) => latchkey.applications.settings(applicationId, { signal }),
  });

export const levelsQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['levels', applicationId],
    queryFn: ({ signal }) => latchkey.levels.get(applicationId, { signal }),
  });

export const filesMetadataQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['files-metadata', applicationId],
    queryFn: ({ signal }) => latchkey.files.metadata(applicationId, { signal }),
  });
