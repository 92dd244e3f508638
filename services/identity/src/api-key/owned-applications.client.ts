import { createClient, type Transport } from '@connectrpc/connect';
import { currentOrigin } from '@latchkey/kit/log/request-context';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { FindOwned } from './api-key.ts';

/** Long enough for one retry after a process that hangs. */
const TIMEOUT_MS = 3_500;

export function createFindOwnedApplications(appsTransport: Transport): FindOwned {
  const client = createClient(ApplicationService, appsTransport);
  return async (accountId, applicationIds) => {
    const headers = { [REQUEST_ID_HEADER]: currentOrigin()?.requestId ?? '' };
    const request = { accountId, applicationIds: [...applicationIds] };
    return (await client.findOwnedApplications(request, { headers, timeoutMs: TIMEOUT_MS })).applicationIds;
  };
}
