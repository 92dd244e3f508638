import { createClient, type Transport } from '@connectrpc/connect';
import { currentContext } from '@latchkey/kit/log/request-context';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { FindOwned } from './api-key.ts';

export function createFindOwnedApplications(appsTransport: Transport): FindOwned {
  const client = createClient(ApplicationService, appsTransport);
  return async (accountId, applicationIds) => {
    const headers = { [REQUEST_ID_HEADER]: currentContext()?.requestId ?? '' };
    const request = { accountId, applicationIds: [...applicationIds] };
    return (await client.findOwnedApplications(request, { headers, timeoutMs: DEADLINES_MS.apps })).applicationIds;
  };
}
