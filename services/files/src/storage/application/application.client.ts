import { createClient, type Transport } from '@connectrpc/connect';
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

/** Takes a file out of releases; true if a published one needs it. */
export type DetachFile = (
  file: { readonly applicationId: string; readonly fileId: string; readonly requestId: string },
  onlyCheck: boolean,
) => Promise<boolean>;

export function createDetachFile(appsTransport: Transport): DetachFile {
  const client = createClient(ReleaseService, appsTransport);
  return async ({ applicationId, fileId, requestId }, onlyCheck) => {
    const options = { headers: { [REQUEST_ID_HEADER]: requestId }, timeoutMs: DEADLINES_MS.apps };
    return (await client.detachFile({ applicationId, fileId, onlyCheck }, options)).isNeeded;
  };
}
