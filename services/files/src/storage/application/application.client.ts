import { createClient, type Transport } from '@connectrpc/connect';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { FindOwnedApplications } from './owned-application.ts';

export function createFindOwned(appsTransport: Transport): FindOwnedApplications {
  const client = createClient(ApplicationService, appsTransport);
  return async (accountId, applicationIds, requestId) => {
    const options = { headers: { [REQUEST_ID_HEADER]: requestId }, timeoutMs: DEADLINES_MS.apps };
    const owned = await client.findOwnedApplications({ accountId, applicationIds: [...applicationIds] }, options);
    return new Set(owned.applicationIds);
  };
}
