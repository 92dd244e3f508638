import { createClient, type HandlerContext, type Transport } from '@connectrpc/connect';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { FindOwnedApplications } from './owned-applications.ts';

/** Enough to go round a process that hangs. */
const TIMEOUT_MS = 3_500;

/** Asks the apps service on behalf of one call, which the question is logged and canceled with. */
export type OwnedApplications = (call: HandlerContext) => FindOwnedApplications;

/** A client that asks over the given transport, for 3.5 s at most. */
export function createOwnedApplications(appsTransport: Transport): OwnedApplications {
  const client = createClient(ApplicationService, appsTransport);
  return (call) => async (accountId, applicationIds) => {
    const options = {
      headers: { [REQUEST_ID_HEADER]: call.requestHeader.get(REQUEST_ID_HEADER) ?? '' },
      timeoutMs: TIMEOUT_MS,
      signal: call.signal,
    };
    const owned = await client.findOwnedApplications({ accountId, applicationIds: [...applicationIds] }, options);
    return owned.applicationIds;
  };
}
