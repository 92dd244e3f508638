import { createClient, type Transport } from '@connectrpc/connect';
import { createBufferedCounts } from '@latchkey/kit/concurrency/buffered-counts';
import type { Logger } from '@latchkey/kit/log/logger';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ReleaseService } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import type { FindOwnedApplications } from './owned-application.ts';

export function createFindOwned(appsTransport: Transport): FindOwnedApplications {
  const client = createClient(ApplicationService, appsTransport);
  return async (accountId, applicationIds, requestId) => {
    const options = { headers: { [REQUEST_ID_HEADER]: requestId }, timeoutMs: DEADLINES_MS.apps };
    const owned = await client.findOwnedApplications({ accountId, applicationIds: [...applicationIds] }, options);
    return new Set(owned.applicationIds);
  };
}

export function createUsageCounts(appsTransport: Transport, logger: Logger) {
  const client = createClient(ApplicationService, appsTransport);
  return createBufferedCounts<'applicationId', 'uploads' | 'downloads'>({
    name: 'usage',
    key: 'applicationId',
    logger,
    deliver: (counts) => client.recordUsage({ counts }, { timeoutMs: DEADLINES_MS.apps }),
  });
}

/** True if a published release needs a file. Others lose it if it is deleted, else they keep it. */
type DetachFile = (
  file: { readonly applicationId: string; readonly fileId: string; readonly requestId: string },
  because: 'deleted' | 'renamed' | 'replaced',
) => Promise<boolean>;

export function createDetachFile(appsTransport: Transport): DetachFile {
  const client = createClient(ReleaseService, appsTransport);
  return async ({ applicationId, fileId, requestId }, because) => {
    const options = { headers: { [REQUEST_ID_HEADER]: requestId }, timeoutMs: DEADLINES_MS.apps };
    const change = { onlyCheck: because !== 'deleted', isReplaced: because === 'replaced' };
    return (await client.detachFile({ applicationId, fileId, ...change }, options)).isNeeded;
  };
}
