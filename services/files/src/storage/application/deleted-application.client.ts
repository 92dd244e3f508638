import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { ListDeletedApplications } from './deletion-catch-up.ts';

const TIMEOUT_MS = 2_000;
const PAGE_SIZE = 500;

/** Asks over the given transport, for 2 s at most and for 500 at once. */
export function createListDeleted(appsTransport: Transport): ListDeletedApplications {
  const client = createClient(ApplicationService, appsTransport);
  return async (since, pageToken) => {
    const request = { deletedSince: timestampFromDate(since), pageSize: PAGE_SIZE, pageToken };
    const { applications, nextPageToken } = await client.listDeletedApplications(request, { timeoutMs: TIMEOUT_MS });
    return { applications, nextPageToken };
  };
}
