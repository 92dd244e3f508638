import { createClient, type Transport } from '@connectrpc/connect';
import { ACTOR_HEADER, formatActor, type Origin } from '@latchkey/audit/actor';
import { currentContext } from '@latchkey/kit/log/request-context';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';

export function createAppsClient(transport: Transport) {
  const client = createClient(ApplicationService, transport);
  return {
    async findOwned(accountId: string, applicationIds: readonly string[]): Promise<readonly string[]> {
      const headers = { [REQUEST_ID_HEADER]: currentContext()?.requestId ?? '' };
      const request = { accountId, applicationIds: [...applicationIds] };
      return (await client.findOwnedApplications(request, { headers, timeoutMs: DEADLINES_MS.apps })).applicationIds;
    },
    /** Deletes all applications of an account. Rejects if apps fails or the signal aborts. */
    async deleteApplications(accountId: string, origin: Origin, signal: AbortSignal): Promise<void> {
      const actor = formatActor(origin);
      const headers = {
        ...(actor && { [ACTOR_HEADER]: actor }),
        ...(origin.requestId && { [REQUEST_ID_HEADER]: origin.requestId }),
      };
      const options = { headers, signal, timeoutMs: DEADLINES_MS.deleteApplications };
      for (let hasMore = true; hasMore; ) {
        signal.throwIfAborted();
        ({ hasMore } = await client.deleteAccountApplications({ accountId }, options));
      }
    },
  };
}
