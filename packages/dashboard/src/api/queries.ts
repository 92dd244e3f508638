// All reads of the dashboard.

import { APPLICATION_SORTS, withDescending } from '@latchkey/contract/list-order';
import { infiniteQueryOptions, keepPreviousData, type Query, queryOptions } from '@tanstack/react-query';
import { latchkey } from './client.ts';

const HOUR_MS = 3_600_000;
/** Interval at which a visible page reads counts again. */
const COUNTS_INTERVAL_MS = 10_000;

type Read<Data> = (options: { readonly signal: AbortSignal }) => Promise<Data>;

/** The second part of a key is the id of the application, if it is of one: changes name that. */
const read = <Data>(queryKey: readonly unknown[], call: Read<Data>) =>
  queryOptions({ queryKey, queryFn: ({ signal }) => call({ signal }) });

/** The session and its account; an error with the code `unauth` without one. */
export const sessionQuery = { ...read(['session'], (options) => latchkey.account.session(options)), staleTime: 60_000 };

export const limitsQuery = read(['limits'], (options) => latchkey.limits.get(options));

/** Options of sign-up, and the issuers to sign in at. */
export const signInMethodsQuery = {
  ...read(['sign-in-methods'], (options) => latchkey.account.signInMethods(options)),
  staleTime: 'static' as const,
};

/** The sessions of the account that have not ended: this one, then those used last. */
export const sessionsQuery = read(['sessions'], (options) => latchkey.account.sessions(options));

/** The issuers that can sign in to the account. */
export const linksQuery = read(['oidc-links'], (options) => latchkey.oidc.links(options));

/** All management API keys of the account, also revoked ones. */
export const apiKeysQuery = read(['api-keys'], (options) => latchkey.apiKeys.list(options));

/** A key with its entity tag; read anew for each form. */
export const apiKeyQuery = (id: string) => ({
  ...read(['api-keys', id], (options) => latchkey.apiKeys.read(id, options)),
  gcTime: 0,
});

/** Requests of a key in 90 days. */
export const requestsQuery = (apiKeyId: string) => ({
  ...read(['api-keys', apiKeyId, 'requests'], (options) => latchkey.apiKeys.requests(apiKeyId, options)),
  // The chart appears after the form each time, whose first input so gets the focus.
  gcTime: 0,
});

export const trustedIssuersQuery = read(['trusted-issuers'], (options) => latchkey.trustedIssuers.list(options));

/** All entries, those of an application, or those of an action: the interface has one filter. */
export interface AuditFilter {
  readonly application?: string | undefined;
  readonly action?: string | undefined;
}

export const toAuditQuery = ({ application, action }: AuditFilter) => ({
  ...(application !== undefined && { applicationId: application }),
  ...(application === undefined && action !== undefined && { action }),
});

export const auditLogQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ['audit-log', toAuditQuery(filter)],
    queryFn: ({ pageParam, signal }) =>
      latchkey.auditLog.list({ ...toAuditQuery(filter), ...(pageParam !== null && { cursor: pageParam }), signal }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });

/** All applications of the account, oldest first, with their runtime keys. */
export const applicationsQuery = read(['applications'], (options) => latchkey.applications.list(options));

/** One of the applications; the interface has no route for one alone. Null if it does not exist. */
export const applicationQuery = (applicationId: string) => ({
  ...applicationsQuery,
  select: (applications: Awaited<ReturnType<typeof latchkey.applications.list>>) =>
    applications.find(({ id }) => id === applicationId) ?? null,
});

const ORDERS = withDescending(APPLICATION_SORTS);
export type Sort = (typeof ORDERS)[number];
/** The order of this name in the URL. */
export const readSort = (value: unknown): Sort | undefined => ORDERS.find((order) => order === value);

/** Parameters of the list in the URL. */
interface ListSearch {
  /** Counts from 1. */
  readonly page?: number | undefined;
  readonly search?: string | undefined;
  readonly sort?: Sort | undefined;
}

/** A page of the applications with status, version, files and storage. */
export const applicationListQuery = ({ page = 1, search, sort = 'name' }: ListSearch) => ({
  ...read(['applications', 'list', { page, search, sort }], (options) =>
    latchkey.applications.page({ page, search, sort, ...options }),
  ),
  placeholderData: keepPreviousData,
});

export const settingsQuery = (id: string) => read(['settings', id], (options) => latchkey.applications.readSettings(id, options));

/** Usage of 90 days. */
export const usageQuery = (id: string) => ({
  ...read(['usage', id], (options) => latchkey.applications.usage(id, options)),
  refetchInterval: COUNTS_INTERVAL_MS,
});

export const liveClientsQuery = (id: string) => ({
  ...read(['live-clients', id], (options) => latchkey.applications.liveClients(id, options)),
  refetchInterval: COUNTS_INTERVAL_MS,
});

/** True for counts, which no change of the account makes old. */
export const isCount = ({ queryKey: [name] }: Query) => name === 'usage' || name === 'live-clients';

export const levelsQuery = (id: string) => read(['levels', id], (options) => latchkey.levels.read(id, options));

/** The releases of an application, newest first. */
export const releasesQuery = (id: string) => read(['releases', id], (options) => latchkey.releases.list(id, options));

/** The signing keys of an application, and whether its feeds need no key. */
export const releaseSettingsQuery = (id: string) =>
  read(['release-settings', id], (options) => latchkey.releases.settings(id, options));

export const filesMetadataQuery = (id: string) => read(['files-metadata', id], (options) => latchkey.files.metadata(id, options));

/** A page of the files of an application, newest first. */
export const filesQuery = (applicationId: string, page: number, search: string) =>
  queryOptions({
    queryKey: ['files', applicationId, { page, search }],
    queryFn: ({ signal }) => latchkey.files.list(applicationId, { page, search, signal }),
    // The table of one application stays while its next page loads.
    placeholderData: (previous, query) => (query?.queryKey[1] === applicationId ? keepPreviousData(previous) : undefined),
  });

/**
 * The unfinished uploads of an application.
 * @param running number of those of this page, which change it
 */
export const unfinishedQuery = (applicationId: string, running: number) =>
  queryOptions({
    queryKey: ['unfinished-uploads', applicationId, running],
    queryFn: async ({ signal }) =>
      (await latchkey.uploads.list({ signal })).filter((upload) => upload.applicationId === applicationId),
    placeholderData: (previous, query) => (query?.queryKey[1] === applicationId ? keepPreviousData(previous) : undefined),
  });

/** True if a file can get a name. */
export const nameQuery = (applicationId: string, name: string) => ({
  ...read(['file-name', applicationId, name], (options) => latchkey.files.isNameFree(applicationId, name, options)),
  gcTime: 0,
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
