import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { DeletedApplication } from './deleted-application.store.ts';
import type { FindOwnedApplications } from './owned-application.ts';

/** Enough for a second try after a process that hangs. */
const OWNED_TIMEOUT_MS = 3_500;
const DELETED_TIMEOUT_MS = 2_000;
const DELETED_PAGE_SIZE = 500;

/** Queries the apps service, for 3.5 s at most. */
export function createFindOwned(appsTransport: Transport): FindOwnedApplications {
  const client = createClient(ApplicationService, appsTransport);
  return async (accountId, applicationIds, requestId) => {
    const options = { headers: { [REQUEST_ID_HEADER]: requestId }, timeoutMs: OWNED_TIMEOUT_MS };
    const owned = await client.findOwnedApplications({ accountId, applicationIds: [...applicationIds] }, options);
    return new Set(owned.applicationIds);
  };
}

/** A page of the applications deleted since a time, oldest first. */
export type ListDeleted = (
  since: Date,
  pageToken: string,
) => Promise<{ readonly items: readonly DeletedApplication[]; readonly nextPageToken: string }>;

/** Queries the apps service, for 2 s at most. */
export function createListDeleted(appsTransport: Transport): ListDeleted {
  const client = createClient(ApplicationService, appsTransport);
  return async (since, pageToken) => {
    const request = { deletedSince: timestampFromDate(since), pageSize: DELETED_PAGE_SIZE, pageToken };
    const options = { timeoutMs: DELETED_TIMEOUT_MS };
    const { applications: items, nextPageToken } = await client.listDeletedApplications(request, options);
    return { items, nextPageToken };
  };
}
