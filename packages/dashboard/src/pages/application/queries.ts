import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';
import { applicationsQuery, LIST_KEY } from '../applications/queries.ts';

const HOUR_MS = 3_600_000;
/** Intervals at which a visible page reads counts again, of which nothing is announced. */
const USAGE_INTERVAL_MS = 30_000;
const LIVE_CLIENTS_INTERVAL_MS = 10_000;

/** One of the applications; the interface has no route for one alone. Null if it does not exist. */
export const applicationQuery = (applicationId: string) => ({
  ...applicationsQuery,
  select: (applications: Awaited<ReturnType<typeof latchkey.applications.list>>) =>
    applications.find(({ id }) => id === applicationId) ?? null,
});

/** Settings with their entity tag. */
export const settingsQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['settings', applicationId],
    queryFn: ({ signal }) => latchkey.applications.readSettings(applicationId, { signal }),
  });

/** Loads anew what a change of a setting changes. */
export async function invalidateSettings(queryClient: QueryClient, applicationId: string): Promise<void> {
  void queryClient.invalidateQueries({ queryKey: LIST_KEY });
  await queryClient.invalidateQueries({ queryKey: settingsQuery(applicationId).queryKey });
}

/** Usage of 90 days. */
export const usageQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['usage', applicationId],
    queryFn: ({ signal }) => latchkey.applications.usage(applicationId, { signal }),
    refetchInterval: USAGE_INTERVAL_MS,
  });

export const liveClientsQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['live-clients', applicationId],
    queryFn: ({ signal }) => latchkey.applications.liveClients(applicationId, { signal }),
    refetchInterval: LIVE_CLIENTS_INTERVAL_MS,
  });

/** License levels with their entity tag. */
export const levelsQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['levels', applicationId],
    queryFn: ({ signal }) => latchkey.levels.read(applicationId, { signal }),
  });

export const filesMetadataQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['files-metadata', applicationId],
    queryFn: ({ signal }) => latchkey.files.metadata(applicationId, { signal }),
  });

/**
 * Times of rotations of an application's keys within the last hour, newest first: the limit counts
 * both.
 */
export const rotationsQuery = (applicationId: string) =>
  queryOptions({
    queryKey: ['rotations', applicationId],
    queryFn: async ({ signal }) => {
      const { entries } = await latchkey.auditLog.list({ action: 'application.runtime_key_rotated', limit: 100, signal });
      return entries.filter((entry) => entry.applicationId === applicationId).map(({ at }) => Date.parse(at));
    },
    select: (times: readonly number[]) => times.filter((at) => at > Date.now() - HOUR_MS),
  });
