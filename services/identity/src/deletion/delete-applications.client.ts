import { createClient, type Transport } from '@connectrpc/connect';
import { ACTOR_HEADER, formatActor, type Origin } from '@latchkey/audit/actor';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';

/** Deletes all applications of an account. Rejects if apps fails or the signal aborts. */
export type DeleteApplications = (accountId: string, origin: Origin, signal: AbortSignal) => Promise<void>;

export function createDeleteApplications(appsTransport: Transport): DeleteApplications {
  const client = createClient(ApplicationService, appsTransport);
  return async (accountId, origin, signal) => {
    const actor = formatActor(origin);
    const headers = {
      ...(actor && { [ACTOR_HEADER]: actor }),
      ...(origin.requestId && { [REQUEST_ID_HEADER]: origin.requestId }),
    };
    for (let hasMore = true; hasMore; ) {
      signal.throwIfAborted();
      ({ hasMore } = await client.deleteAccountApplications(
        { accountId },
        { headers, signal, timeoutMs: DEADLINES_MS.deleteApplications },
      ));
    }
  };
}
