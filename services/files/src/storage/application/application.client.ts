import { createClient, type Transport } from '@connectrpc/connect';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { FindOwnedApplications } from './owned-application.ts';

/** Enough for a second try after a process that hangs. */
const TIMEOUT_MS = 3_500;

export function createFindOwned(appsTransport: Transport): FindOwnedApplications {
  const client = createClient(ApplicationService, appsTransport);
  return async (accountId, applicationIds, requestId) => {
    const options = { headers: { [REQUEST_ID_HEADER]: requestId }, timeoutMs: TIMEOUT_MS };
    const owned = await client.findOwnedApplications({ accountId, applicationIds: [...applicationIds] }, options);
    return new Set(owned.applicationIds);
  };
}
